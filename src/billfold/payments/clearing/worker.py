"""Day end of the bank: customers' trades and payments are settled once the day is over.

Days are closed in order and once (the idempotency key is the date), after all customers with work
due by the end of the day are caught up. A day settles everything due by then that is not settled
yet, so a trade that committed too late is settled a day later.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime

from billfold.bills.rules.strategies import STRATEGIES
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.clearing.rules import CloseBankDay, RailTotals, SettlementBlock
from billfold.payments.clearing.store import SettlementPeriod, list_cleared
from billfold.payments.files.types import SETTLEMENT_LOOKBACK
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_instant
from billfold.platform.errors import MarketDataStale
from billfold.platform.ids import command_id
from billfold.treasury.market_log import record_closing_prices

_NEXT_OPEN_DAY = """
WITH bank AS MATERIALIZED (SELECT business_date, due_at FROM ledger_head WHERE customer_id = $1 AND due_at <= $2)
SELECT business_date, due_at,
       EXISTS (SELECT 1 FROM ledger_head WHERE due_at <= (SELECT due_at FROM bank) AND customer_id <> $1)
         AS customers_first
  FROM bank
"""
_UNSETTLED = """
SELECT t.settles_on, t.cusip, t.price_micros, t.side,
       (t.units - coalesce(s.units, 0))::bigint AS units,
       (t.cents - coalesce(s.cents, 0))::bigint AS customers_cents
  FROM (SELECT settles_on, cusip, price_micros, activity AS side,
               sum(units) AS units, sum(notional) AS cents
          FROM trade
         WHERE settles_on BETWEEN $1 AND $2 AND activity IN ('BUY', 'SELL', 'MATURITY')
         GROUP BY settles_on, cusip, price_micros, activity) t
  LEFT JOIN
       (SELECT settles_on, cusip, price_micros, side,
               sum(units) AS units, sum(customers_cents) AS cents
          FROM settlement WHERE settles_on BETWEEN $1 AND $2
         GROUP BY settles_on, cusip, price_micros, side) s
       USING (settles_on, cusip, price_micros, side)
 WHERE t.units > coalesce(s.units, 0)
 ORDER BY settles_on, cusip, price_micros, side
"""
_HELD_CUSIPS = "SELECT DISTINCT asset FROM account WHERE live AND kind = 'lot' ORDER BY asset"
_INSERT_CLOSING_PRICES = """
INSERT INTO closing_price (business_date, cusip, bid_micros, ask_micros, mark_micros)
SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
ON CONFLICT DO NOTHING RETURNING cusip
"""


async def close_bank_days(bank: Bank, now: datetime) -> int:
    """Close every day of the bank that is over by `now`; return how many.

    Stops before a day for which a customer still has due work, which must be done first.
    """
    bank_id = bank_customer_id(bank.seed)
    closed = 0
    while True:
        async with bank.pool.acquire() as conn:
            open_day = await conn.fetchrow(_NEXT_OPEN_DAY, bank_id, now)
            if open_day is None or open_day["customers_first"]:
                return closed
            day = open_day["business_date"]
            # A day that was declared closed while it was open settles nothing.
            blocks = await find_unsettled(conn, bank.calendars.settlement_on_or_before(day))
            clearings = await find_uncleared(conn, bank, day)
            await _store_closing_prices(conn, bank, day)
        await bank.engine.submit(
            CloseBankDay(
                caller="house",
                key=command_id("house-day", day.isoformat()),
                customers=(bank_id,),
                day=day,
                blocks=blocks,
                clearings=clearings,
            )
        )
        closed += 1


async def find_unsettled(conn: Connection, day: date) -> tuple[SettlementBlock, ...]:
    """Return the unsettled blocks of trades that settle by `day`, one per price and side."""
    rows = await conn.fetch(_UNSETTLED, day - SETTLEMENT_LOOKBACK, day)
    return tuple(SettlementBlock(**row) for row in rows)


async def find_uncleared(conn: Connection, bank: Bank, day: date) -> tuple[RailTotals, ...]:
    """Return the unsettled amounts of the rails that settle by the close of `day`."""
    first, day = day - SETTLEMENT_LOOKBACK, bank.calendars.fed_on_or_before(day)
    span = SettlementPeriod(first, et_instant(first, 0), day, ends=bank.calendars.closes_at(day))
    found = await list_cleared(conn, bank_customer_id(bank.seed), span)
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
        with suppress(MarketDataStale):
            cusips.add(market.on_the_run(strategy.maturity_weeks, day).cusip)
    for cusip in sorted(cusips):
        bill = market.bill(cusip)
        if bill.maturity > day:
            yield cusip, market.t0_bid(bill, at), market.ask(bill, at), market.mark(bill, at)
