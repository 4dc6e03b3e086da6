"""Approval rules. Whoever changes one only asks for it here: another member confirms it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from litestar import delete, get, patch, post
from litestar.status_codes import HTTP_202_ACCEPTED

from billfold.domain import requests
from billfold.domain.requests import Rule
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.authorization_requests import shown_changes
from billfold.interfaces.customer_api.groups import APPROVALS
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.customer_api.principal import principal_of
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.bodies import in_body
from billfold.interfaces.http.marks import granted, refuses
from billfold.interfaces.http.shapes.approval import (
    ApprovalRule,
    ApprovalRules,
    AuthorizationRequest,
    CreateApprovalRule,
    UpdateApprovalRule,
    render_rule,
    rule_fields,
)
from billfold.kit import ids
from billfold.kit.errors import InvalidInput

READS = granted("approval_rules.read", APPROVALS)
WRITES = granted("approval_rules.write", APPROVALS)
_ALL = "/api/v1/approval-rules/"
_ONE = f"{_ALL}{{rule_id:str}}/"


@get(_ALL, operation_id="list_approval_rules", opt=READS, tags=["approvals"])
async def list_approval_rules(member: Member, bank: Bank) -> ApprovalRules:
    """List the rules by which transfers and sensitive changes are approved, the oldest first."""
    rules = await requests.list_rules(bank.pool, member.customer_id)
    return ApprovalRules(items=[render_rule(each) for each in rules])


@post(
    _ALL,
    status_code=HTTP_202_ACCEPTED,
    operation_id="create_approval_rule",
    opt=WRITES,
    tags=["approvals"],
)
async def create_approval_rule(
    member: Member, bank: Bank, data: CreateApprovalRule
) -> AuthorizationRequest:
    """Ask for a rule. It is there, as `resource_id`, once another member has confirmed it."""
    now = member.now
    rule = Rule(rule_id=ids.new(), created_at=now, updated_at=now, **rule_fields(data))
    return await _asked(member, bank, "approval_rule.create", rule, None)


@get(_ONE, operation_id="get_approval_rule", opt=READS | refuses("not-found"), tags=["approvals"])
async def get_approval_rule(member: Member, bank: Bank, rule_id: str) -> ApprovalRule:
    """Read a rule."""
    return render_rule(await requests.get_rule(bank.pool, member.customer_id, _id(rule_id)))


@patch(
    _ONE,
    status_code=HTTP_202_ACCEPTED,
    operation_id="update_approval_rule",
    opt=WRITES | refuses("not-found"),
    tags=["approvals"],
)
async def update_approval_rule(
    member: Member, bank: Bank, rule_id: str, data: UpdateApprovalRule
) -> AuthorizationRequest:
    """Ask for a change of a rule. What was asked for under the rule before keeps its terms."""
    to: dict[str, Any] = rule_fields(data)
    if not to:
        raise InvalidInput.at("body", msg="names nothing to change")
    found = await requests.get_rule(bank.pool, member.customer_id, _id(rule_id))
    rule = msgspec.structs.replace(found, **to, version=found.version + 1)
    return await _asked(member, bank, "approval_rule.update", rule, found)


@delete(
    _ONE,
    status_code=HTTP_202_ACCEPTED,
    operation_id="delete_approval_rule",
    opt=WRITES | refuses("not-found"),
    tags=["approvals"],
)
async def delete_approval_rule(member: Member, bank: Bank, rule_id: str) -> AuthorizationRequest:
    """Ask for the end of a rule."""
    found = await requests.get_rule(bank.pool, member.customer_id, _id(rule_id))
    return await _asked(member, bank, "approval_rule.delete", found, found)


async def _asked(
    member: Member, bank: Bank, action: str, rule: Rule, now_is: Rule | None
) -> AuthorizationRequest:
    able = await requests.possible_reviewers(bank.pool, member.customer_id, apart_from=())
    if action != "approval_rule.delete":
        with in_body():
            requests.check_rule(rule, {each.member_id for each in able})
    by = await principal_of(member, bank)
    asked = await requests.ask_for_rule(by, action, rule, now_is=now_is)
    return (await shown_changes(bank, [asked]))[0]


def _id(text: str) -> UUID:
    return ids_in.path_uuid("rule_id", text)


ROUTES = [
    list_approval_rules,
    create_approval_rule,
    get_approval_rule,
    update_approval_rule,
    delete_approval_rule,
]
