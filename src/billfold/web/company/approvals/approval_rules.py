"""The approval rules of a company: those in force, who could approve under them, and their changes."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
from litestar import get, post

from billfold.approvals import routes
from billfold.approvals.authorization_requests import RULE_CHANGES, check_rule_change
from billfold.approvals.rule_schemas import ApprovalRule, CreateApprovalRule, render_rule, rule_fields
from billfold.approvals.rules import find_lockout, list_approvers
from billfold.approvals.schemas import AuthorizationRequest
from billfold.approvals.store.approval_rules import list_rules
from billfold.approvals.store.reviews import list_team
from billfold.approvals.types import Reviewer, Rule
from billfold.http.raw_request import convert
from billfold.platform import ids
from billfold.platform.money import format_usd
from billfold.web.company.approvals.rule_words import ACTIONS, KINDS, ROLES, names_of, sentence_of_rule
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import cents_of, ticked
from billfold.web.page_context import FormError, PageResponse, path_id, redirect, shown_again

_PATH = "/companies/{customer_id:str}/approval-rules"
_HISTORY = 20
_ORDER = 5
_AMOUNTS = ("min_amount_usdc", "daily_cap_usdc")


class ShownRule(msgspec.Struct, kw_only=True):
    """A rule in words, who could approve under it today, and why nobody could, if so."""

    rule: ApprovalRule
    sentence: str
    approvers: list[Reviewer]
    lockout: str | None


def show(rule: Rule, team: list[Reviewer]) -> ShownRule:
    """Return a rule as pages show it."""
    shown, names = render_rule(rule), names_of(team)
    found = {each.member_id: each for action in rule.actions for each in list_approvers(rule, team, action=action)}
    return ShownRule(
        rule=shown,
        sentence=sentence_of_rule(shown, names),
        approvers=list(found.values()) if rule.required_approvals else [],
        lockout=find_lockout(rule, team),
    )


@get(_PATH)
async def show_rules(company: InCompany) -> PageResponse:
    """Show the rules in force, changes that wait, and what was decided before."""
    company.require("approval_rules.read")
    pool, key = company.page.pool, company.customer_id
    team = await list_team(pool, key)
    found = await company.api.get(
        routes.list_authorization_requests, **{"action[]": sorted(RULE_CHANGES)}, limit=_HISTORY
    )
    names = names_of(team)
    changes = [(each, _sentence_of(each, names)) for each in found.items]
    return company.render(
        "approval_rules",
        rules=[show(each, team) for each in await list_rules(pool, key)],
        waiting=[each for each in changes if each[0].status == "PENDING"],
        history=[each for each in changes if each[0].status != "PENDING"],
        is_alone=len([each for each in team if each.role in ROLES]) == 1,
    )


def _sentence_of(change: AuthorizationRequest, names: Mapping[UUID, str]) -> str:
    return sentence_of_rule(msgspec.convert(change.change["rule"], ApprovalRule, strict=False), names)


async def _form(
    company: Company, rule_id: str = "", *, reviewed: ShownRule | None = None, wrong: FormError = ""
) -> PageResponse:
    company.require("approval_rules.write")
    team = await list_team(company.page.pool, company.customer_id)
    stored = None
    if rule_id:
        stored = await company.api.get(routes.get_approval_rule, rule_id=path_id(rule_id))
    approvers, given = [each for each in team if each.role in ROLES], company.page.form or _given_by(stored)
    return company.render(
        "approval_rule",
        wrong=wrong,
        stored=stored,
        sentence=sentence_of_rule(stored, names_of(team)) if stored else "",
        given=given,
        reviewed=reviewed,
        actions=ACTIONS,
        kinds=KINDS,
        roles=ROLES,
        people={str(key): name for key, name in names_of(approvers).items()},
        names_people=any(each.startswith("approver.") for each in given),
        places=range(_ORDER),
    )


def _given_by(stored: ApprovalRule | None) -> dict[str, str]:
    """Return the fields of the form of a rule, or those of a new one."""
    if stored is None:
        return {"action.TRANSFER": "yes", "required_approvals": "2", "enabled": "yes"}
    lists: dict[str, list[str]] = {"action": [*stored.actions], "type": [*stored.transfer_types]}
    who = [*stored.approver_roles, *map(str, stored.approver_ids)]
    if stored.ordered:
        given = {f"order_{n}": each for n, each in enumerate(who)}
    else:
        lists |= {"role": stored.approver_roles, "approver": [str(each) for each in stored.approver_ids]}
        given = {}
    given |= {f"{name}.{each}": "yes" for name, items in lists.items() for each in items}
    amounts = {name: getattr(stored, name) for name in _AMOUNTS}
    given |= {name: format_usd(cents).removeprefix("$") for name, cents in amounts.items() if cents}
    given |= {"name": stored.name, "required_approvals": str(stored.required_approvals)}
    return given | ({"enabled": "yes"} if stored.enabled else {})


def _body_of(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the body that a form sends. Raises InvalidInput."""
    order = [each for n in range(_ORDER) if (each := form.get(f"order_{n}", ""))]
    roles = [each for each in order if each in ROLES] if order else ticked(form, "approver_roles")
    count = form.get("required_approvals", "")
    return {
        "name": form.get("name", "").strip(),
        "actions": ticked(form, "actions"),
        "transfer_types": ticked(form, "transfer_types"),
        **{name: cents_of(name, text) if (text := form.get(name, "").strip()) else None for name in _AMOUNTS},
        "required_approvals": len(order) if order else int(count) if count.isdecimal() and len(count) == 1 else -1,
        "approver_roles": roles,
        "approver_ids": [each for each in order if each not in ROLES] if order else ticked(form, "approver_ids"),
        "ordered": bool(order),
        "enabled": form.get("enabled") == "yes",
    }


async def _review(company: Company, body: Mapping[str, Any], stored: ApprovalRule | None) -> ShownRule:
    """Return the rule of a body as it would be. Raises InvalidInput as when it is proposed."""
    now = company.clock.now
    fields = rule_fields(convert(body, CreateApprovalRule))
    rule = Rule(rule_id=stored.id if stored else ids.new(), created_at=now, updated_at=now, **fields)
    await check_rule_change(company.page.pool, company.customer_id, rule)
    return show(rule, await list_team(company.page.pool, company.customer_id))


@get(f"{_PATH}/new")
async def show_new_rule(company: InCompany) -> PageResponse:
    """Show the form of a new rule."""
    return await _form(company)


@post(f"{_PATH}/new")
@shown_again(_form, unless="forbidden")
async def propose_rule(company: InCompany) -> PageResponse:
    """Review a new rule in words, or propose it."""
    company.require("approval_rules.write")
    body = _body_of(company.page.form)
    if company.page.form.get("step") != "propose":
        return await _form(company, reviewed=await _review(company, body, None))
    made = await company.api.send(routes.create_approval_rule, body, key=company.page.form_key)
    return _proposed(company, made)


@get(f"{_PATH}/{{rule_id:str}}")
async def show_rule(company: InCompany, rule_id: str) -> PageResponse:
    """Show the form that changes a rule."""
    return await _form(company, rule_id)


@post(f"{_PATH}/{{rule_id:str}}")
@shown_again(_form, unless="forbidden")
async def propose_rule_change(company: InCompany, rule_id: str) -> PageResponse:
    """Review a changed rule in words, propose it, or propose to remove the rule."""
    company.require("approval_rules.write")
    key, form = path_id(rule_id), company.page.form
    stored = await company.api.get(routes.get_approval_rule, rule_id=key)
    if form.get("change") == "remove":
        made = await company.api.send(routes.delete_approval_rule, key=company.page.form_key, rule_id=key)
        return _proposed(company, made)
    body = _body_of(form)
    if form.get("step") != "propose":
        return await _form(company, rule_id, reviewed=await _review(company, body, stored))
    made = await company.api.send(routes.update_approval_rule, body, key=company.page.form_key, rule_id=key)
    return _proposed(company, made)


def _proposed(company: Company, made: AuthorizationRequest) -> PageResponse:
    return redirect(f"{company.path}/approvals/changes/{made.id}", done="change-proposed")
