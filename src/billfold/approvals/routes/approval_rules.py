"""Approval rules. A change is only requested here: another member confirms it."""

from typing import Any
from uuid import UUID

import msgspec

from billfold.approvals import authorization_requests
from billfold.approvals.routes.authorization_requests import render_authorization_requests
from billfold.approvals.routes.principal import principal_of
from billfold.approvals.rules import MAY_APPROVE, check_rule, find_candidates
from billfold.approvals.schemas import (
    ApprovalRule,
    ApprovalRules,
    AuthorizationRequest,
    CreateApprovalRule,
    UpdateApprovalRule,
    render_rule,
    rule_fields,
)
from billfold.approvals.store import approval_rules
from billfold.approvals.store.reviews import list_other_members
from billfold.approvals.types import DEFAULT_REQUIREMENT, Rule
from billfold.http.operations import delete, get, patch, post, with_scope
from billfold.http.raw_request import in_body
from billfold.ledger.bank import Bank
from billfold.oauth.authentication import CustomerCaller
from billfold.platform import ids
from billfold.platform.errors import InvalidInput

READS = with_scope("approval_rules.read", "approvals")
WRITES = with_scope("approval_rules.write", "approvals")
_ALL = "/api/v1/approval-rules/"
_ONE = f"{_ALL}{{rule_id}}/"


@get(_ALL, READS, tag="approvals")
async def list_approval_rules(member: CustomerCaller, bank: Bank) -> ApprovalRules:
    """List approval rules.

    Rules by which transfers and sensitive changes are approved, the oldest first.
    """
    rules = await approval_rules.list_rules(bank.pool, member.customer_id)
    return ApprovalRules(items=[render_rule(each) for each in rules])


@post(_ALL, WRITES, tag="approvals", status=202)
async def create_approval_rule(member: CustomerCaller, bank: Bank, data: CreateApprovalRule) -> AuthorizationRequest:
    """Create approval rule.

    The rule exists, as `resource_id`, once another member has confirmed it.
    """
    now = member.now
    rule = Rule(rule_id=ids.new(), created_at=now, updated_at=now, **rule_fields(data))
    return await _requested(member, bank, "approval_rule.create", rule=rule, current=None)


@get(_ONE, READS, tag="approvals")
async def get_approval_rule(member: CustomerCaller, bank: Bank, rule_id: UUID) -> ApprovalRule:
    """Get approval rule."""
    return render_rule(await approval_rules.get_rule(bank.pool, member.customer_id, rule_id))


@patch(_ONE, WRITES, tag="approvals", status=202)
async def update_approval_rule(
    member: CustomerCaller, bank: Bank, rule_id: UUID, data: UpdateApprovalRule
) -> AuthorizationRequest:
    """Update approval rule.

    Another member confirms the change. Earlier requests keep the terms of the rule before.
    """
    to: dict[str, Any] = rule_fields(data)
    if not to:
        raise InvalidInput.at("body", msg="names nothing to change")
    found = await approval_rules.get_rule(bank.pool, member.customer_id, rule_id)
    rule = msgspec.structs.replace(found, **to, version=found.version + 1)
    return await _requested(member, bank, "approval_rule.update", rule=rule, current=found)


@delete(_ONE, WRITES, tag="approvals", status=202)
async def delete_approval_rule(member: CustomerCaller, bank: Bank, rule_id: UUID) -> AuthorizationRequest:
    """Delete approval rule.

    Another member confirms it.
    """
    found = await approval_rules.get_rule(bank.pool, member.customer_id, rule_id)
    return await _requested(member, bank, "approval_rule.delete", rule=found, current=found)


async def _requested(
    member: CustomerCaller, bank: Bank, action: str, rule: Rule, current: Rule | None
) -> AuthorizationRequest:
    if action != "approval_rule.delete":
        team = await list_other_members(bank.pool, member.customer_id, than=())
        with in_body():
            check_rule(rule, find_candidates(team, DEFAULT_REQUIREMENT, named=(), needs=MAY_APPROVE))
    by = await principal_of(member, bank)
    requested = await authorization_requests.request_rule_change(by, action, rule, current=current)
    return (await render_authorization_requests(bank, [requested]))[0]
