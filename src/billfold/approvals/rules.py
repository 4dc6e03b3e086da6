"""Chooses the approval rule, and decides who may review and when a request is approved. Pure."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from billfold.approvals import types as approval_types
from billfold.approvals.types import DEFAULT_REQUIREMENT, ApprovalRequirement, Rule
from billfold.identity.users.rules import PERMISSIONS, Action, Confirmation, Role
from billfold.platform.errors import FieldError, InvalidInput, Refused
from billfold.policies.types import PolicyDecision

REQUEST_LIFETIME = timedelta(days=7)
"""Lifetime of a request, by the bank's clock."""
_ANY_TYPE = ("any",) * 4
"""A rule without types counts as less specific than one that names all three."""
MAY_APPROVE = "transfers.approve"
MAY_CONFIRM = "authorization_requests.write"
MAY_REQUEST = "transfers.write"
"""Permissions that a role needs to decide about transfers, and about sensitive changes."""


def text_of(content: Any) -> str:  # noqa: ANN401 - any JSON
    """Return content as the canonical JSON text that is approved: sorted names, one way to write it."""
    return msgspec.json.encode(msgspec.to_builtins(content, str_keys=True), order="deterministic").decode()


def hash_of(text: str) -> bytes:
    """Return the hash that approvals are bound to: the SHA-256 of the exact text."""
    return hashlib.sha256(text.encode()).digest()


def challenge_of(nonce: str, request_id: UUID, decision: str, content_hash: str) -> bytes:
    """Return the challenge that a passkey signs to confirm a decision about a request with this content."""
    text = "\n".join(("billfold.decision", nonce, str(request_id), decision, content_hash))
    return hashlib.sha256(text.encode()).digest()


def decision_hash(request_id: UUID, decision: str, content_hash: str) -> str:
    """Return the hash of one decision in a list that is confirmed at once: hexadecimal SHA-256."""
    text = "\n".join(("billfold.decision", str(request_id), decision, content_hash))
    return hashlib.sha256(text.encode()).hexdigest()


def challenge_of_list(nonce: str, decisions: Iterable[str]) -> bytes:
    """Return the challenge that a passkey signs to confirm decisions, given by their hashes, in their order."""
    return hashlib.sha256("\n".join(("billfold.decisions", nonce, *decisions)).encode()).digest()


# -- which rule ------------------------------------------------------------------------


def matching_rules(
    rules: Iterable[Rule], action: Action, *, type_: str | None = None, amount: int | None = None
) -> list[Rule]:
    """Return the rules that apply, the deciding one first.

    The most specific rule decides. If one is more specific in the type and another in the amount,
    neither outranks the other: then the stricter one decides.
    """
    about = [each for each in rules if _is_about(each, action, type_=type_, amount=amount)]
    ranked: list[Rule] = []
    while about:
        best = [each for each in about if not any(_is_more_specific(other, each) for other in about)]
        best.sort(key=lambda each: (-each.required_approvals, each.created_at, each.rule_id))
        ranked.append(best[0])
        about.remove(best[0])
    return ranked


def stricter_requirements(ranked: Sequence[Rule], than: Rule) -> list[ApprovalRequirement]:
    """Return the requirements that apply when the daily cap of a rule is used up, in order.

    Only rules that require more approvals count; the default of one approval comes last.
    """
    others = [requirement_of(each) for each in ranked if each.rule_id != than.rule_id]
    return [each for each in (*others, DEFAULT_REQUIREMENT) if each.required > than.required_approvals]


def requirement_of(rule: Rule) -> ApprovalRequirement:
    """Return the requirement of a rule, as stored with requests made under it."""
    return ApprovalRequirement(
        rule_id=rule.rule_id,
        rule_name=rule.name,
        required=rule.required_approvals,
        roles=rule.approver_roles,
        ids=rule.approver_ids,
        ordered=rule.ordered,
    )


def _is_about(rule: Rule, action: Action, *, type_: str | None, amount: int | None) -> bool:
    if not rule.enabled or action not in rule.actions:
        return False
    if action != "TRANSFER":
        return True
    fits = not rule.transfer_types or type_ in rule.transfer_types
    return fits and (rule.min_amount is None or (amount or 0) >= rule.min_amount)


def _is_more_specific(one: Rule, other: Rule) -> bool:
    """Return whether a rule is at least as specific in every respect, and more specific in one."""
    types = len(other.transfer_types or _ANY_TYPE) - len(one.transfer_types or _ANY_TYPE)
    amounts = (one.min_amount or 0) - (other.min_amount or 0)
    return types >= 0 and amounts >= 0 and types + amounts > 0


def check_rule(rule: Rule, approver_ids_allowed: Collection[UUID]) -> None:
    """Raise InvalidInput, each error at its field, unless a rule can be satisfied.

    `approver_ids_allowed` are the members who may approve.
    """
    mistakes = [
        FieldError(("approver_roles", place), f"{role} does not include {MAY_APPROVE}", "enum")
        for place, role in enumerate(rule.approver_roles)
        if MAY_APPROVE not in PERMISSIONS[role]
    ]
    mistakes += [
        FieldError(("approver_ids", place), "must be an active approver of the team", "value_error")
        for place, member_id in enumerate(rule.approver_ids)
        if member_id not in approver_ids_allowed
    ]
    mistakes += _order_mistakes(rule) if rule.ordered else _count_mistakes(rule)
    if "TRANSFER" not in rule.actions:
        mistakes += [
            FieldError((name,), "is only taken by rules about TRANSFER", "value_error")
            for name, given in (
                ("transfer_types", rule.transfer_types),
                ("min_amount_usdc", rule.min_amount),
                ("daily_cap_usdc", rule.daily_cap),
            )
            if given
        ]
    if mistakes:
        raise InvalidInput(mistakes)


_PERMISSIONS_OF: Mapping[Action, tuple[str, str]] = {
    "TRANSFER": (MAY_REQUEST, MAY_APPROVE),
    "NEW_COUNTERPARTY": ("counterparties.write", MAY_CONFIRM),
    "MEMBER_ROLE": ("team.write", MAY_CONFIRM),
}
"""The permissions to request an action, and to approve it."""


def list_approvers(
    rule: Rule, team: Collection[approval_types.Reviewer], *, action: Action
) -> list[approval_types.Reviewer]:
    """Return the members who may approve an action under a rule, if they did not request it themselves."""
    found = find_candidates(team, requirement_of(rule), named=(), needs=_PERMISSIONS_OF[action][1])
    return [each for each in team if each.member_id in found]


def find_lockout(rule: Rule, team: Collection[approval_types.Reviewer]) -> str | None:
    """Return why no request of the team can be approved under a rule, or None while one can.

    What is impossible without the rule, too, the rule does not lock out.
    """
    for action in rule.actions if rule.enabled else ():
        blocker = find_blocker_of_team(requirement_of(rule), team, action)
        without = DEFAULT_REQUIREMENT if action == "TRANSFER" else ApprovalRequirement(required=0)
        if blocker and not find_blocker_of_team(without, team, action):
            return f"{blocker} Nobody approves their own request."
    return None


def find_blocker_of_team(
    terms: ApprovalRequirement, team: Collection[approval_types.Reviewer], action: Action
) -> str | None:
    """Return why nobody's request for an action could be approved; None if somebody's could."""
    requests, needs = _PERMISSIONS_OF[action]
    able = find_candidates(team, terms, named=(), needs=needs)
    blockers = [
        find_blocker(terms, {key: role for key, role in able.items() if key != each.member_id}, approvals=0)
        for each in team
        if requests in PERMISSIONS[each.role]
    ]
    return blockers[0] if all(blockers) and blockers else None


def _order_mistakes(rule: Rule) -> list[FieldError]:
    lists = [each for each in (rule.approver_ids, rule.approver_roles) if each]
    is_twice = len(set(rule.approver_ids)) < len(rule.approver_ids)
    if len(lists) == 1 and len(lists[0]) == rule.required_approvals and not is_twice:
        return []
    needed = f"needs approver_ids, each once, or approver_roles, of {rule.required_approvals} in their order"
    return [FieldError(("ordered",), needed, "value_error")]


def _count_mistakes(rule: Rule) -> list[FieldError]:
    if not rule.approver_ids or rule.approver_roles:
        return []
    if len(set(rule.approver_ids)) >= rule.required_approvals:
        return []
    return [FieldError(("approver_ids",), "are fewer than required_approvals", "too_short")]


# -- who may review --------------------------------------------------------------------


def may_review(terms: ApprovalRequirement, member_id: UUID, role: Role, *, needs: str) -> bool:
    """Return whether a member may review under this requirement, at any position in the order."""
    if needs not in PERMISSIONS[role]:
        return False
    if terms.candidates is not None:
        role_then = terms.candidates.get(member_id)
        if role_then is None or (terms.ordered and terms.roles and role_then != role):
            return False
    if terms.policy_roles and role not in terms.policy_roles:
        return False
    return not (terms.roles or terms.ids) or role in terms.roles or member_id in terms.ids


def check_reviewer(
    terms: ApprovalRequirement, member_id: UUID, role: Role, *, named: Collection[UUID], needs: str, is_requester: bool
) -> None:
    """Refuse the requester, and members who are not reviewers of this request.

    `named` are the reviewers that the request names; if empty, all members. Raises Refused
    `self-approval`, `forbidden`, `not-a-reviewer`.
    """
    if is_requester:
        raise Refused("self-approval", "Self-approval is not allowed. Another member must decide.")
    if needs not in PERMISSIONS[role]:
        raise Refused("forbidden", f"The role {role} does not include {needs}.")
    if named and member_id not in named:
        raise Refused("not-a-reviewer", "The request names its reviewers, and you are not one of them.")
    if not may_review(terms, member_id, role, needs=needs):
        raise Refused("not-a-reviewer", f"{_rule_of(terms)} had other reviewers when this request was made.")


def find_candidates(
    team: Iterable[approval_types.Reviewer], terms: ApprovalRequirement, *, named: Collection[UUID], needs: str
) -> dict[UUID, Role]:
    """Return the given members who may review a request, with their roles. `named` as for `check_reviewer`."""
    return {
        each.member_id: each.role
        for each in team
        if may_review(terms, each.member_id, each.role, needs=needs) and (not named or each.member_id in named)
    }


def check_content(verdict: approval_types.Verdict, request: approval_types.StoredRequest) -> None:
    """Refuse a decision about other content than the request's, and an approval that does not state its content.

    Until its first change a request has only one content. Raises Refused `content-changed`.
    """
    names_none = verdict.content_hash is None and verdict.version is None
    if (
        verdict.content_hash not in {None, request.content_hash}
        or verdict.version not in {None, request.version or 1}
        or (names_none and verdict.decision == "APPROVED" and request.version is not None)
    ):
        raise Refused(
            "content-changed", "The request has changed. Read it again, and send the content_hash of what you approve."
        )


def check_confirmed(
    confirmation: Confirmation | None, request: approval_types.StoredRequest, decision: approval_types.Decision
) -> None:
    """Refuse a decision that is not in the list that its factor confirmed. Raises Refused `content-changed`."""
    if confirmation is None or not confirmation.decisions:
        return
    if decision_hash(request.request_id, decision, request.content_hash.hex()) not in confirmation.decisions:
        raise Refused("content-changed", "This decision is not among those that were confirmed. Read it again.")


def check_turn(terms: ApprovalRequirement, member_id: UUID, role: Role, *, approvals: int) -> None:
    """Refuse an approval that is given out of order; `approvals` have been given already.

    Raises Refused `approval-out-of-order`.
    """
    if not terms.ordered or approvals >= len(terms.ids or terms.roles):  # a policy may ask for more of them
        return
    awaited: object = terms.ids[approvals] if terms.ids else terms.roles[approvals]
    if awaited not in {member_id, role}:
        who = "another member" if terms.ids else f"a member in the role {awaited}"
        raise Refused("approval-out-of-order", f"Approvals come in order; {who} is next.")


# -- when it is enough -----------------------------------------------------------------


def find_blocker(terms: ApprovalRequirement, able: Mapping[UUID, Role], *, approvals: int) -> str | None:
    """Return why a request can never be approved, or None while it can.

    `approvals` have been given already, `able` are the members who may still review.
    """
    missing = terms.required - approvals
    enough = missing <= len(able)
    if terms.ordered:
        awaited: Iterable[object] = terms.ids[approvals:] or terms.roles[approvals:]
        enough = enough and not Counter(awaited) - Counter(list(able) if terms.ids else able.values())
    if enough:
        return None
    order = " in its order" if terms.ordered else ""
    who = {0: "nobody", 1: "only one member"}.get(len(able), f"only {len(able)} members")
    needed = "1 more is needed" if missing == 1 else f"{missing} more are needed"
    return f"{_rule_of(terms)} requires more approvals than the team can give: {needed}{order}, and {who} may give one."


def find_requester_blocker(role: Role | None) -> str | None:
    """Return why a transfer cannot be approved because of its requester's role; None: no longer an active member."""
    if role is not None and MAY_REQUEST in PERMISSIONS[role]:
        return None
    return "The requester may no longer request transfers. Cancel or deny this request and create a new one."


def _rule_of(terms: ApprovalRequirement) -> str:
    if terms.policy_rule:
        return f"The policy rule {terms.policy_rule!r}"
    return f"The rule {terms.rule_name!r}" if terms.rule_name else "The default rule"


def tighten(terms: ApprovalRequirement, found: PolicyDecision, version: int) -> ApprovalRequirement:
    """Return the requirement of a rule with what a policy decided: each approval must meet both.

    Raises Refused `policy-refused`.
    """
    if found.reason is not None:
        raise policy_refusal(found.reason, version, found.rule)
    named = {"policy_version": version, "policy_rule": found.rule, "policy_roles": found.roles}
    if not terms.required and found.approvals:  # what the rule says about approvers applied to none
        named |= {"roles": (), "ids": (), "ordered": False}
    return msgspec.structs.replace(terms, required=max(terms.required, found.approvals), **named)


def policy_refusal(reason: str, version: int, rule: str | None) -> Refused:
    """Return the refusal of a payment by a policy."""
    return Refused("policy-refused", reason, policy_version=version, policy_rule=rule)


def approvals_in(reviews: Iterable[approval_types.ReviewRow]) -> int:
    """Count the approvals that are valid."""
    return sum(each.holds and each.decision == "APPROVED" for each in reviews)


def status_after(
    terms: ApprovalRequirement, approvals: int, decision: approval_types.Decision
) -> approval_types.Status:
    """Return the status of a request after one more decision; `approvals` were given before."""
    if decision == "DENIED":
        return "DENIED"
    return "APPROVED" if approvals + 1 >= terms.required else "PENDING"
