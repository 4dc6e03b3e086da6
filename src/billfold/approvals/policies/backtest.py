"""Tries a policy on the payments of a past month: those that it would decide otherwise than the one in force.

A month at a time, because conditions read what was used in it; in parts, so that neither memory nor the time between
other requests depends on the number of payments.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date, datetime, timedelta
from typing import Annotated, Final, Literal, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.approvals.store.policy_facts import Parties, Usage, load_parties
from billfold.approvals.transfer_orders import RequestContent, decode_content
from billfold.http.schemas import one_of
from billfold.ledger.bank import Bank
from billfold.policies.expressions import facts_of
from billfold.policies.rules import CompiledPolicy
from billfold.policies.types import PolicyDecision

CHANGES_MAX: Final = 500
PAYMENTS_MAX: Final = 50_000
"""The payments of a month that are tried."""
_CHARS_MAX = 50_000_000
"""Characters of conditions that are evaluated at most, about 15 seconds of a processor."""
_CHARS_AT_ONCE = 20_000
"""Characters after which other requests come between: a few milliseconds."""
_CHARS_COUNTED = 1_000_000
"""Characters that a limit of use counts as one: up to a second of a processor."""
_PART = 200
_PAYMENTS = """
SELECT request_id, content, member_id, business_date, created_at, written_no, reason
  FROM transfer_request
 WHERE customer_id = $1 AND created_at >= $2::date - 7 AND business_date >= $2 AND business_date < $3
   AND series_state IS NULL AND status IN ('PENDING', 'APPROVED')
   AND ($4::timestamptz IS NULL OR (created_at, written_no) > ($4, $5::bigint))
 ORDER BY created_at, written_no LIMIT $6
"""


class TriedDecision(msgspec.Struct, kw_only=True):
    """The decision of a policy about a payment, and its rule; null if none applies."""

    decision: Annotated[str, one_of("ALLOW", "REFUSE", "REQUIRE")]
    rule: str | None
    approvals: int
    reason: str | None


class ChangedDecision(msgspec.Struct, kw_only=True):
    """A payment, the id of its transfer request, and the decisions of the policy in force and of the one tried."""

    transfer_request_id: UUID
    time_created: datetime
    in_force: TriedDecision
    tried: TriedDecision


class Backtest(msgspec.Struct, kw_only=True):
    """The payments of a month that would be decided otherwise: their number, and the first 500 of them.

    `complete` is false if the month has more than 50,000 payments, or fewer for a long policy, of which the first were
    tried. `previous_month` is null after a year.
    """

    month: date
    payments: int
    changed: int
    complete: bool
    items: list[ChangedDecision]
    previous_month: date | None
    object_type: Literal["PolicyBacktest"] = "PolicyBacktest"


class _Payment(NamedTuple):
    request_id: UUID
    content: RequestContent
    member_id: UUID
    business_date: date
    created_at: datetime
    failed: bool


async def run_backtest(
    bank: Bank,
    customer_id: UUID,
    month: date,
    in_force: CompiledPolicy,
    *,
    tried: CompiledPolicy,
    count: Callable[..., Awaitable[None]],
) -> Backtest:
    """Try a policy on the payments that were requested in the month that begins on a day.

    `count` counts each part before it is tried, a long one several times (`more`), and may refuse it.
    """
    usage, found = (
        Usage(month),
        Backtest(month=month, payments=0, changed=0, complete=True, items=[], previous_month=None),
    )
    cost = 1 + sum(len(rule.when) for rule, _ in (*in_force.rules, *tried.rules))
    most, at_once = min(PAYMENTS_MAX, _CHARS_MAX // cost), max(1, _CHARS_AT_ONCE // cost)
    async for part, parties in _parts(bank, customer_id, month):
        await count(more=max(1, len(part) * cost // _CHARS_COUNTED))
        for each in part:
            if found.payments >= most:
                found.complete = False
                return found
            usage.start_day(each.business_date)
            payment = parties.payment(each.content, each.member_id, each.created_at)
            payee = parties.counted_payee(each.content)
            facts = facts_of(payment, usage.of(payee))
            before, after = in_force.decide(facts), tried.decide(facts)
            if not each.failed:
                usage.add(payee, each.content.amount)
            found.payments += 1
            if before != after:
                found.changed += 1
                if len(found.items) < CHANGES_MAX:
                    found.items.append(_changed(each, before, after))
            if found.payments % at_once == 0:
                await asyncio.sleep(0)  # other requests come between
    return found


async def _parts(bank: Bank, customer_id: UUID, month: date) -> AsyncIterator[tuple[list[_Payment], Parties]]:
    """Yield payments with what is known of their parties. Between two parts others use the connection."""
    place: tuple[datetime | None, int | None] = (None, None)
    end = (month + timedelta(days=31)).replace(day=1)
    while True:
        async with bank.pool.acquire() as conn:
            rows = await conn.fetch(_PAYMENTS, customer_id, month, end, *place, _PART)
            if not rows:
                return
            part = [_read(row) for row in rows]
            members = list({each.member_id for each in part})
            parties = await load_parties(bank, conn, customer_id, [each.content for each in part], members)
        place = rows[-1]["created_at"], rows[-1]["written_no"]
        yield part, parties


def _read(row: Record) -> _Payment:
    return _Payment(
        row["request_id"],
        decode_content(row["content"]),
        row["member_id"],
        row["business_date"],
        row["created_at"],
        row["reason"] is not None,
    )


def _changed(payment: _Payment, before: PolicyDecision, after: PolicyDecision) -> ChangedDecision:
    return ChangedDecision(
        transfer_request_id=payment.request_id,
        time_created=payment.created_at,
        in_force=_shown(before),
        tried=_shown(after),
    )


def _shown(found: PolicyDecision) -> TriedDecision:
    return TriedDecision(decision=found.decision, rule=found.rule, approvals=found.approvals, reason=found.reason)
