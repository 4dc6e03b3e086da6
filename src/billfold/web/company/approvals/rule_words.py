"""Approval rules in sentences."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.approvals.rule_schemas import ApprovalRule
from billfold.approvals.schemas import AuthorizationRequest
from billfold.approvals.store.reviews import list_team
from billfold.approvals.types import Reviewer
from billfold.platform.money import format_usd
from billfold.web.console.team import Company

ROLES: Final = {"ADMIN": "Admins", "MANAGER": "Managers", "APPROVER": "Approvers"}
"""The roles that may approve."""
ACTIONS: Final = {"TRANSFER": "Transfers", "NEW_COUNTERPARTY": "New payees", "MEMBER_ROLE": "Changes of the team"}
KINDS: Final = {"ON_US": "Transfers within this bank", "WIRE": "Wires", "USDC": "USDC transfers"}


def sentence_of_rule(rule: ApprovalRule, names: Mapping[UUID, str]) -> str:
    """Return a rule as a sentence; `names` are those of members."""
    transfers = [KINDS[each] for each in rule.transfer_types] or [ACTIONS["TRANSFER"]]
    subjects = [what for each in rule.actions for what in (transfers if each == "TRANSFER" else [ACTIONS[each]])]
    subject = listed([subjects[0], *(each if each[:4] == "USDC" else each.lower() for each in subjects[1:])], "and")
    if rule.min_amount_usdc:
        subject += f" of {format_usd(rule.min_amount_usdc)} or more"
    count = rule.required_approvals
    needed = f"{count or 'no'} approval{'' if count <= 1 else 's'}"
    return f"{subject} need {needed}{_from(rule, names) if count else ''}.{_cap(rule)}"


def names_of(team: Iterable[Reviewer]) -> dict[UUID, str]:
    """Return the names of members by their ids."""
    return {each.member_id: f"{each.first_name} {each.last_name}".strip() for each in team}


async def words_of_rule(
    company: Company, request: AuthorizationRequest, before: Mapping[str, Any]
) -> list[tuple[str, str | None, str]]:
    """Return what a change of a rule means: its sentence now and then."""
    team = await list_team(company.page.pool, company.customer_id)
    names = names_of(team)
    now = sentence_of_rule(msgspec.convert(before, ApprovalRule), names) if before else None
    if request.action == "approval_rule.delete":
        return [("In words", now, "No such rule")]
    return [("In words", now, sentence_of_rule(msgspec.convert(request.change["rule"], ApprovalRule), names))]


def listed(words: Sequence[str], conjunction: str) -> str:
    """Return words as a list in a sentence: a, b or c."""
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _from(rule: ApprovalRule, names: Mapping[UUID, str]) -> str:
    people = [names.get(each, "a former member") for each in rule.approver_ids]
    if rule.ordered:
        return ": first " + ", then ".join(people or [_one(each) for each in rule.approver_roles])
    who = [*_plural(rule.approver_roles), *people]
    return f" from {listed(who, 'or')}" if who else " from any other member who may approve"


def _plural(roles: Iterable[str]) -> list[str]:
    return [ROLES.get(each, each.title()) for each in roles]


def _one(role: str) -> str:
    return f"{'an' if role[0] in 'AI' else 'a'} {role.title()}"


def _cap(rule: ApprovalRule) -> str:
    if rule.daily_cap_usdc is None:
        return ""
    return f" Up to {format_usd(rule.daily_cap_usdc)} per business day; beyond that the next stricter rule decides."
