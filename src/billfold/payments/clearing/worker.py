"""Day end of the bank: customers' trades and payments are settled once the day is over.

Days are closed in order and once (the idempotency key is the date), after all customers with work
due by the end of the day are caught up, except those that are set apart because their work fails.
A day settles everything due by then that is not settled yet, so a trade that committed too late is
settled a day later, and those of a customer set apart with the first close after its repair.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import structlog

from billfold.bills.rules.strategies import STRATEGIES
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import SET_APART
from billfold.payments.clearing.rules import CloseBankDay, MovedPocket, RailTotals, ReportMoves, SettlementBlock
from billfold.payments.clearing.store import SettlementPeriod, list_cleared
from billfold.payments.files.types import SETTLEMENT_LOOKBACK
from billfold.platform.calendars import Calendars
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import read_put_aside
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import NotFound
from billfold.platform.ids import command_id
from billfold.trading.rules.executions import SETTLES_WITHIN
from billfold.trading.settlement.types import redemption_id_of
from billfold.treasury.market_log import MARKET_LOG, RECORDED, record_closing_prices
from billfold.treasury.rules.catch_up import RescheduleDueWork

log = structlog.get_logger(__name__)

FAILURES = "report of moved settlements"
_BOOKED_BEFORE = timedelta(days=21)
"""Maximum time between the booking and the settlement of a payment."""
_BATCH_SIZE = 100
_AFFECTED = """
WITH a AS MATERIALIZED (
  SELECT customer_id, pocket_id, true AS is_trade FROM trade WHERE settles_on = $1
   UNION
  SELECT customer_id, pocket_id, type = 'ON_US' FROM transaction
   WHERE settles_at >= $2 AND settles_at < $3 AND booked_at > $4 AND settles_at > booked_at)
SELECT a.customer_id, a.pocket_id, bool_or(a.is_trade) AS has_trade, t.event_id, t.moved_to FROM a
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
    rows = await bank.pool.fetch(_PUT_OFF, et_instant(day, 0), et_instant(after, 0), bank.own_id)
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


_NEXT_OPEN_DAY = f"""
WITH bank AS MATERIALIZED (SELECT business_date, due_at FROM ledger_head WHERE customer_id = $1 AND due_at <= $2),
     late AS (SELECT customer_id, due_at FROM ledger_head
               WHERE due_at <= (SELECT due_at FROM bank) AND customer_id <> $1),
     apart AS MATERIALIZED ({SET_APART})
SELECT business_date,
       EXISTS (SELECT 1 FROM late WHERE customer_id NOT IN (SELECT customer_id FROM apart)) AS customers_first,
       (SELECT min(due_at) FROM late JOIN apart USING (customer_id)) AS apart_since
  FROM bank
"""
_APART_AT_LAST_CLOSE = """
SELECT (outcome ->> 'apart_since')::date FROM command WHERE customer_id = $1 AND command_id = $2
"""
_LAST_CLOSED_DAY = "SELECT max(business_date) FROM closing_price WHERE business_date < $1"
_UNSETTLED = """
SELECT t.settles_on, t.cusip, t.price_micros, t.side,
       (t.units - coalesce(s.units, 0))::bigint AS units,
       (t.cents - coalesce(s.cents, 0))::bigint AS customers_cents
  FROM (SELECT settles_on, cusip, price_micros, activity AS side,
               sum(units) AS units, sum(notional) AS cents
          FROM trade
         WHERE settles_on BETWEEN $1 AND $3 AND activity IN ('BUY', 'SELL', 'MATURITY')
           AND (settles_on <= $2 OR activity <> 'MATURITY' AND book_date <= $4)
         GROUP BY settles_on, cusip, price_micros, activity) t
  LEFT JOIN
       (SELECT settles_on, cusip, price_micros, side,
               sum(units) AS units, sum(customers_cents) AS cents
          FROM settlement WHERE settles_on BETWEEN $1 AND $3
         GROUP BY settles_on, cusip, price_micros, side) s
       USING (settles_on, cusip, price_micros, side)
 WHERE t.units > coalesce(s.units, 0)
 ORDER BY settles_on, cusip, price_micros, side
"""
_CALLER = "house"
_HELD_CUSIPS = """
SELECT DISTINCT asset FROM account WHERE live AND (kind = 'lot' OR kind = 'inventory' AND asset <> 'USD') ORDER BY asset
"""
_INVENTORY = """
SELECT asset FROM account WHERE customer_id = $1 AND kind = 'inventory' AND asset <> 'USD' AND credits <> debits
"""
_INSERT_CLOSING_PRICES = """
INSERT INTO closing_price (business_date, cusip, bid_micros, ask_micros, mark_micros)
SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
ON CONFLICT DO NOTHING RETURNING cusip
"""


async def close_bank_days(bank: Bank, now: datetime) -> int:
    """Close every day of the bank that is over by `now`; return how many.

    Stops before a day for which a customer still has due work, which must be done first, unless it is set apart.
    """
    bank_id = bank.own_id
    closed = 0
    while True:
        async with bank.pool.acquire() as conn:
            open_day = await conn.fetchrow(_NEXT_OPEN_DAY, bank_id, now)
            if open_day is None or open_day["customers_first"]:
                return closed
            day = open_day["business_date"]
            apart_since = open_day["apart_since"] and et_date(open_day["apart_since"])
            since = min(filter(None, (apart_since, await _find_apart_since(conn, bank_id, day))), default=None)
            # A day that was declared closed while it was open settles nothing.
            settled_by = bank.calendars.settlement_on_or_before(day)
            has_dealers = bool(bank.terms.dealers)
            blocks = await find_unsettled(conn, settled_by, since, booked_by=day if has_dealers else None)
            redeemed = await _find_redemptions(conn, bank, blocks) if has_dealers else ()
            clearings = await find_uncleared(conn, bank, day)
            await _store_closing_prices(conn, bank, day)
        await bank.engine.submit(
            CloseBankDay(
                caller=_CALLER,
                key=_key_of(day),
                customers=(bank_id,),
                day=day,
                blocks=blocks,
                clearings=clearings,
                apart_since=apart_since,
                from_inventory=has_dealers,
                references=redeemed,
            )
        )
        closed += 1


async def _find_redemptions(conn: Connection, bank: Bank, blocks: Iterable[SettlementBlock]) -> tuple[UUID, ...]:
    """Return the redemptions that a close may expect: of its blocks, which may change the inventory, and of that."""
    held = [asset for (asset,) in await conn.fetch(_INVENTORY, bank.own_id)]
    named = [block.cusip for block in blocks]
    return tuple(redemption_id_of(cusip) for cusip in dict.fromkeys(named + held))


def _key_of(day: date) -> UUID:
    return command_id("house-day", day.isoformat())


async def _find_apart_since(conn: Connection, bank_id: UUID, day: date) -> date | None:
    """Return since when work was due of customers that were set apart at the close before `day`: it may be done now."""
    last = await conn.fetchval(_LAST_CLOSED_DAY, day)
    if last is None:
        return None
    since: date | None = await conn.fetchval(_APART_AT_LAST_CLOSE, bank_id, command_id(_CALLER, _key_of(last)))
    return since


async def find_unsettled(
    conn: Connection, day: date, since: date | None = None, *, booked_by: date | None = None
) -> tuple[SettlementBlock, ...]:
    """Return the unsettled blocks of trades that settle by `day`, one per price and side.

    `since` is the date from which on trades may have been booked late, if that is longer ago than usual. With
    `booked_by` purchases and sales booked by that date are included, whenever they settle.
    """
    first = day - SETTLEMENT_LOOKBACK
    last = day if booked_by is None else booked_by + SETTLES_WITHIN
    rows = await conn.fetch(_UNSETTLED, min(first, since or first), day, last, booked_by or day)
    return tuple(SettlementBlock(**row) for row in rows)


async def find_uncleared(conn: Connection, bank: Bank, day: date) -> tuple[RailTotals, ...]:
    """Return the unsettled amounts of the rails that settle by the close of `day`."""
    first, day = day - SETTLEMENT_LOOKBACK, bank.calendars.fed_on_or_before(day)
    span = SettlementPeriod(first, et_instant(first, 0), day, ends=bank.calendars.closes_at(day))
    found = await list_cleared(conn, bank.own_id, span)
    return tuple(
        RailTotals(each.settles_on, each.rail, max(each.unsettled_in, 0), outflow=max(each.unsettled_out, 0))
        for each in found
        if each.unsettled_in > 0 or each.unsettled_out > 0
    )


async def _store_closing_prices(conn: Connection, bank: Bank, day: date) -> None:
    """Store the closing price of every on-the-run bill and every bill in a portfolio, and record them."""
    held_cusips = [row["asset"] for row in await conn.fetch(_HELD_CUSIPS)]
    rows = list(_closing_prices(bank, day, held_cusips))
    columns = [list(column) for column in zip(*rows, strict=True)]
    async with conn.transaction():
        if await conn.fetch(_INSERT_CLOSING_PRICES, day, *columns):
            await record_closing_prices(conn, bank.vault, day)


def _closing_prices(bank: Bank, day: date, held_cusips: Iterable[str]) -> Iterable[tuple[str, int, int, int]]:
    market, at = bank.market, bank.calendars.closes_at(day)
    cusips = {*held_cusips}
    for strategy in STRATEGIES:
        with suppress(NotFound):
            cusips.add(market.on_the_run(strategy.maturity_weeks, day).cusip)
    for cusip in sorted(cusips):
        bill = market.bill(cusip)
        if bill.maturity > day:
            yield cusip, market.t0_bid(bill, at), market.ask(bill, at), market.mark(bill, at)
