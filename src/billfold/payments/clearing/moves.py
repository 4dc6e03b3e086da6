"""Notifies customers of calendar changes: transactions due on a day that is now closed settle on the next open day.

Nothing is written of the move itself: readers of a settlement date ask the calendars. What a customer was told last
is its last event about the day.
"""

from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.clearing.rules import MovedPocket, ReportMoves
from billfold.platform.calendars import Calendars
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import read_put_aside
from billfold.platform.dates import et_date, et_instant
from billfold.platform.ids import command_id
from billfold.treasury.market_log import MARKET_LOG, RECORDED
from billfold.treasury.rules.catch_up import RescheduleDueWork

log = structlog.get_logger(__name__)

FAILURES = "report of moved settlements"
_BOOKED_BEFORE = timedelta(days=21)
"""Maximum time between the booking and the settlement of a payment."""
_BATCH_SIZE = 100
_AFFECTED = """
SELECT a.customer_id, a.pocket_id, bool_or(a.is_trade) AS has_trade, t.event_id, t.moved_to
  FROM (SELECT customer_id, pocket_id, true AS is_trade FROM trade WHERE settles_on = $1
        UNION
        SELECT customer_id, pocket_id, type = 'ON_US' FROM transaction
         WHERE settles_at >= $2 AND settles_at < $3 AND booked_at > $4 AND settles_at > booked_at) a
  LEFT JOIN LATERAL (
    SELECT event_id, (payload->>'moved_to')::date AS moved_to FROM event e
     WHERE e.customer_id = a.customer_id AND e.kind = 'settlements.moved'
       AND e.payload->>'pocket_id' = a.pocket_id::text AND e.payload->>'settlement_date' = $1::date::text
     ORDER BY e.event_no DESC LIMIT 1) t ON true
 GROUP BY a.customer_id, a.pocket_id, t.event_id, t.moved_to ORDER BY a.customer_id, a.pocket_id
"""


# Work postponed by a closure that was then revoked comes up by the next open day at the latest.
_PUT_OFF = "SELECT customer_id FROM ledger_head WHERE due_at >= $1 AND due_at < $2 AND customer_id <> $3"


class _Move(NamedTuple):
    """A pocket to be notified, and a previous event with other content, if there was one."""

    customer_id: UUID
    pocket: MovedPocket
    after: UUID | None


class MovedSettlements:
    """A task of the worker. It runs once after each change of the calendars, and once at the start."""

    def __init__(self) -> None:
        self._done_for: object = None

    async def report(self, bank: Bank) -> int:
        """Notify every customer with a changed settlement day; return how many. A failed one is tried again later."""
        aside = await read_put_aside(bank.pool, FAILURES, wall_now())
        overrides = bank.calendars.overrides
        if self._done_for == overrides and not aside.due:
            return 0
        failed: dict[str, Exception] = {}
        told, today = 0, et_date(await bank.now())
        for day in await _changed_days(bank, today):
            await _bring_forward(bank, day)
            moves = await _find_moves(bank, day)
            for first in range(0, len(moves), _BATCH_SIZE):
                batch = [
                    each for each in moves[first : first + _BATCH_SIZE] if str(each.customers[0]) not in aside.waiting
                ]
                for command, answer in zip(batch, await bank.engine.submit_all(batch), strict=True):
                    if isinstance(answer, Exception):
                        failed[str(command.customers[0])] = answer
                        log.error("moved_settlements_not_reported", customer_id=str(command.customers[0]))
                    else:
                        told += 1
        await aside.record(bank.pool, failed, wall_now())
        self._done_for = overrides
        return told


async def _changed_days(bank: Bank, today: date) -> list[date]:
    """Return the days from today on that an operator has ever overridden."""
    rows = await bank.pool.fetch(RECORDED, MARKET_LOG)
    days = (date.fromisoformat(row["key"]) for row in rows if row["kind"] == "calendar_override")
    return sorted(day for day in days if day >= today)


async def _bring_forward(bank: Bank, day: date) -> None:
    """Recompute when postponed work is due, in case the day is open again."""
    if not bank.calendars.is_fed_day(day):
        return
    after = bank.calendars.next_settlement_day(day) + timedelta(days=1)
    rows = await bank.pool.fetch(_PUT_OFF, et_instant(day, 0), et_instant(after, 0), bank_customer_id(bank.seed))
    commands = [RescheduleDueWork(caller="calendar", key=each, customers=(each,)) for (each,) in rows]
    for first in range(0, len(commands), _BATCH_SIZE):
        # If it fails, the customer's work comes up a day late at most.
        await bank.engine.submit_all(commands[first : first + _BATCH_SIZE])


async def _find_moves(bank: Bank, day: date) -> list[ReportMoves]:
    """Return a command per customer not yet notified of the new settlement day of transactions due on a day."""
    starts, ends = et_instant(day, 0), et_instant(day + timedelta(days=1), 0)
    rows = await bank.pool.fetch(_AFFECTED, day, starts, ends, starts - _BOOKED_BEFORE)
    moves = [
        _Move(row["customer_id"], MovedPocket(row["pocket_id"], to), after=row["event_id"])
        for row in rows
        for to in [_moved_to(bank.calendars, day, has_trade=row["has_trade"])]
        if to != (row["moved_to"] or day)
    ]
    return [_command(day, customer_id, list(own)) for customer_id, own in groupby(moves, key=lambda e: e.customer_id)]


def _moved_to(calendars: Calendars, day: date, *, has_trade: bool) -> date:
    return calendars.settlement_on_or_after(day) if has_trade else calendars.fed_on_or_after(day)


def _command(day: date, customer_id: UUID, moves: list[_Move]) -> ReportMoves:
    said = " ".join(f"{each.pocket.pocket_id}:{each.pocket.moved_to}:{each.after}" for each in moves)
    return ReportMoves(
        caller="calendar",
        key=command_id(f"moved:{day}", said),
        customers=(customer_id,),
        day=day,
        pockets=tuple(each.pocket for each in moves),
    )
