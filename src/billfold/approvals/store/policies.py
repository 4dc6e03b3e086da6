"""Policies as stored, what they require of requests, and why they refuse to execute them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.approvals.rules import policy_refusal, tighten
from billfold.approvals.store.approval_rules import LOCK, DailyCaps, load_rules, requirement_under
from billfold.approvals.store.policy_facts import Parties, Usage, load_parties, load_usage
from billfold.approvals.transfer_orders import RequestContent
from billfold.approvals.types import DEFAULT_REQUIREMENT, Actor, ApprovalRequirement
from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import KeysetList
from billfold.platform.errors import InvariantError, NotFound, Refused
from billfold.policies.expressions import facts_of
from billfold.policies.rules import CompiledPolicy, compile_policy
from billfold.policies.types import PolicyDecision, PolicyVersion

_COLUMNS = (
    "SELECT version, document, content_hash, request_id, member_id, created_at FROM policy WHERE customer_id = $1"
)
_BY_THEN = "created_at <= coalesce($2::timestamptz, 'infinity')"
_LATEST = f"{_COLUMNS} AND {_BY_THEN} ORDER BY version DESC LIMIT 1"
_ONE = f"{_COLUMNS} AND {_BY_THEN} AND version = $3"
_REQUESTED = """
SELECT request_id, member_id, business_date, created_at, written_no, series_id, batch_id FROM transfer_request
 WHERE customer_id = $1 AND request_id = ANY($2) ORDER BY created_at, written_no
"""
_APPROVERS = """
SELECT q.request_id, v.user_id, v.role FROM transfer_request q
  JOIN review v ON v.customer_id = q.customer_id AND v.request_id IN (q.request_id, q.series_id, q.batch_id)
 WHERE q.customer_id = $1 AND q.request_id = ANY($2) AND v.decision = 'APPROVED' AND v.voided_at IS NULL
"""
_APPROVERS_OF = """
SELECT request_id, user_id, role FROM review
 WHERE customer_id = $1 AND request_id = ANY($2) AND decision = 'APPROVED' AND voided_at IS NULL
"""
VERSIONS: KeysetList[PolicyVersion] = KeysetList(
    f"{_COLUMNS} AND {_BY_THEN} AND {{page}}", lambda row: msgspec.convert(dict(row), PolicyVersion), version="bigint"
)
"""The versions of a customer's policy, those at an instant if one is given; the one in force first."""


class ApprovedList(NamedTuple):
    """A batch whose rows are executed as one, before they are requests."""

    request_id: UUID
    member_id: UUID
    business_date: date
    created_at: datetime


async def find_policy(conn: Db, customer_id: UUID, *, as_of: datetime | None = None) -> PolicyVersion | None:
    """Return the policy in force, now or at an instant; None before the first version."""
    row = await conn.fetchrow(_LATEST, customer_id, as_of)
    return None if row is None else msgspec.convert(dict(row), PolicyVersion)


async def get_policy(conn: Db, customer_id: UUID, version: int, *, as_of: datetime | None = None) -> PolicyVersion:
    """Return a version, if it was there already at an instant. Raises NotFound."""
    row = await conn.fetchrow(_ONE, customer_id, as_of, version)
    if row is None:
        raise NotFound("There is no such version of the policy.")
    return msgspec.convert(dict(row), PolicyVersion)


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy of a customer with the facts that it decides about these payments by, one after the other."""

    version: int
    compiled: CompiledPolicy
    parties: Parties
    usage: Usage
    now: datetime

    def decide(self, content: RequestContent, member_id: UUID) -> PolicyDecision:
        """Decide about a payment that a member requests."""
        payment = self.parties.payment(content, member_id, self.now)
        return self.compiled.decide(facts_of(payment, self.usage.of(self.parties.counted_payee(content))))

    def count(self, content: RequestContent) -> None:
        """Count a payment as used by those after it."""
        self.usage.add(self.parties.counted_payee(content), content.amount)


async def _load(
    bank: Bank,
    conn: Db,
    customer_id: UUID,
    contents: Sequence[RequestContent],
    *,
    members: Sequence[UUID],
    day: date,
    before: tuple[datetime, int] | None = None,
    now: datetime,
) -> PolicyInForce:
    found = await find_policy(conn, customer_id)
    if found is None:
        raise InvariantError("a policy was in force, and is not there")
    compiled, usage = compile_policy(found.document), Usage(day)
    if any("used" in rule.when for rule, _ in compiled.rules):  # else the payments of the month need not be summed
        usage = await load_usage(conn, customer_id, contents, day, before=before)
    parties = await load_parties(bank, conn, customer_id, contents, members)
    return PolicyInForce(found.version, compiled, parties, usage, now)


async def requirements_for(
    bank: Bank, conn: Connection, by: Actor, contents: Sequence[RequestContent]
) -> list[ApprovalRequirement | Refused]:
    """Return the approvals that each transfer requires, or why it is refused, after those before it.

    The stricter of the customer's rules and of its policy decides. Caps and the policy are locked until the transaction
    ends.
    """
    rules, version = await load_rules(conn, by.customer_id)
    caps = DailyCaps(conn, by.customer_id, by.business_date, except_for=[each.request_id for each in contents])
    policy = None
    if version is not None:
        await conn.execute(LOCK, by.customer_id)
        policy = await _load(
            bank, conn, by.customer_id, contents, members=[by.member_id], day=by.business_date, now=by.now
        )
    found: list[ApprovalRequirement | Refused] = []
    for content in contents:
        decided = PolicyDecision() if policy is None else policy.decide(content, by.member_id)
        try:
            if policy is not None:
                tighten(DEFAULT_REQUIREMENT, decided, policy.version)  # before a cap is used
            terms = await requirement_under(rules, caps, type_=content.type, amount=content.amount)
        except Refused as refusal:
            found.append(refusal)
            continue
        if policy is not None:
            policy.count(content)
            terms = tighten(terms, decided, policy.version)
        found.append(terms)
    return found


async def requirement_for(bank: Bank, conn: Connection, by: Actor, content: RequestContent) -> ApprovalRequirement:
    """Return the approvals that a transfer requires. Raises Refused `amount-not-allowed`, `policy-refused`."""
    (found,) = await requirements_for(bank, conn, by, [content])
    if isinstance(found, Refused):
        raise found
    return found


async def find_refusals(
    bank: Bank,
    conn: Db,
    customer_id: UUID,
    contents: Sequence[RequestContent],
    *,
    batch: ApprovedList | None = None,
    approved: bool = True,
) -> dict[UUID, Refused]:
    """Return why the policy in force now refuses to execute requests, by their ids.

    Each counts what was requested before it, on the day of its request. If they are `approved`, the approvals that were
    given must be enough for the policy of now; those of a series or batch are given for each of its rows. Rows of a
    `batch` that is executed as one are not requests yet.
    """
    ids = [each.request_id for each in contents]
    rows = {row["request_id"]: row for row in await conn.fetch(_REQUESTED, customer_id, ids)}
    now = await bank.now(conn)
    day, before = bank.calendars.business_date(now), None
    members = {row["member_id"] for row in rows.values()}
    if batch is not None:
        members, day, before = {batch.member_id}, batch.business_date, (batch.created_at, 0)
    elif rows:
        last = list(rows.values())[-1]
        day, before = last["business_date"], (last["created_at"], last["written_no"])
    policy = await _load(bank, conn, customer_id, contents, members=list(members), day=day, before=before, now=now)
    given = await _load_approvers(conn, customer_id, ids, batch) if approved else {}
    found: dict[UUID, Refused] = {}
    for content in contents:
        key = content.request_id
        decided = policy.decide(content, rows[key]["member_id"] if key in rows else next(iter(members), customer_id))
        reason = decided.reason
        if reason is None and approved:
            reason = _find_missing(decided, given[key].values())
        if reason is None:
            policy.count(content)
        else:
            found[key] = policy_refusal(reason, policy.version, decided.rule)
    return found


def _find_missing(decided: PolicyDecision, approvers: Iterable[set[str]]) -> str | None:
    """Return which approvals a policy requires beyond those of persons with these roles."""
    given = sum(not decided.roles or not roles.isdisjoint(decided.roles) for roles in approvers)
    if given >= decided.approvals:
        return None
    roles = f" by {' or '.join(decided.roles)}" if decided.roles else ""
    return (
        f"The policy rule {decided.rule!r} now requires {decided.approvals} approvals{roles}, and {given} of them were "
        "given. Send a new request."
    )


async def _load_approvers(
    conn: Db, customer_id: UUID, ids: Sequence[UUID], batch: ApprovedList | None
) -> dict[UUID, dict[UUID, set[str]]]:
    """Return by request the persons who approved it, its series or its batch, with their roles then."""
    found: dict[UUID, dict[UUID, set[str]]] = {each: {} for each in ids}
    if batch is not None:
        shared: dict[UUID, set[str]] = {}
        for _, user_id, role in await conn.fetch(_APPROVERS_OF, customer_id, [batch.request_id]):
            shared.setdefault(user_id, set()).add(role)
        return dict.fromkeys(ids, shared)
    for request_id, user_id, role in await conn.fetch(_APPROVERS, customer_id, list(ids)):
        found[request_id].setdefault(user_id, set()).add(role)
    return found
