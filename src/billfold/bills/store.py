"""The market from its tables."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from billfold.bills.rules.market import Market
from billfold.bills.types import Auction, Bill, DailyRates, Quote

if TYPE_CHECKING:
    from billfold.platform.calendars import Calendars
    from billfold.platform.database.pool import Connection, Pool

_SECURITIES = "SELECT cusip, isin, maturity, first_issue, original_term FROM security"
_AUCTIONS = """
SELECT a.cusip, a.term, a.auction_date, a.issue_date, s.maturity, a.announced_on,
       a.high_rate_milli, a.investment_milli, a.price_micros, a.reopening, a.cash_management,
       a.basis
  FROM auction a JOIN security s USING (cusip) ORDER BY a.issue_date, a.cusip
"""
# Rows are added, and results that were not out yet filled in; so their count shows what is new.
_COUNTS = """
SELECT (SELECT count(*) FROM security), count(*), count(*) FILTER (WHERE basis <> 'none'),
       (SELECT count(*) FROM bill_rate)
  FROM auction
"""
_RATES = "SELECT day, weeks, discount_milli, coupon_milli FROM bill_rate ORDER BY day, weeks"


async def load_market(conn: Connection, calendars: Calendars) -> Market:
    """Return the market of everything on record. Raises ValueError when no rate is.

    In a transaction that sees one snapshot, lest an import comes in between.
    """
    row_counts = await count_rows(conn)
    market = Market.from_rows(
        calendars, await list_securities(conn), await list_auctions(conn), rates=await list_daily_rates(conn)
    )
    market.row_counts = row_counts
    return market


async def count_rows(conn: Connection | Pool) -> tuple[int, ...]:
    """Return how many rows a market read now would be made of."""
    (row,) = await conn.fetch(_COUNTS)
    return tuple(row)


async def list_securities(conn: Connection) -> list[Bill]:
    """Return every bill on record."""
    return [Bill(*row) for row in await conn.fetch(_SECURITIES)]


async def list_auctions(conn: Connection) -> list[Auction]:
    """Return every auction on record, oldest issue first."""
    return [Auction(**row) for row in await conn.fetch(_AUCTIONS)]


async def list_daily_rates(conn: Connection) -> list[DailyRates]:
    """Return the rates of every day on record, oldest first."""
    rows = await conn.fetch(_RATES)
    return [
        DailyRates(day, tuple(Quote(row["weeks"], row["discount_milli"], row["coupon_milli"]) for row in quotes))
        for day, quotes in groupby(rows, key=lambda row: row["day"])
    ]
