"""Loads the market from its tables, and the calendars with the operator's overrides of single days."""

from datetime import date, time, timedelta
from itertools import groupby

import msgspec

from billfold.bills.rules.market import Market
from billfold.bills.types import Auction, Bill, CurvePoint, DailyRates, PriceStrike, Quote
from billfold.platform.calendars import Calendars, DayOverride
from billfold.platform.database.connection import Connection, Db

_SECURITIES = "SELECT cusip, isin, maturity, first_issue, original_term FROM security"
_AUCTIONS = """
SELECT a.cusip, a.term, a.auction_date, a.issue_date, s.maturity, a.announced_on,
       a.high_rate_milli, a.investment_milli, a.price_micros, a.reopening, a.cash_management,
       a.basis
  FROM auction a JOIN security s USING (cusip) ORDER BY a.issue_date, a.cusip
"""
# Rows are only added, and missing results filled in; so the counts identify the version.
# An override may change again.
_VERSION = """
SELECT (SELECT count(*) FROM security), count(*), count(*) FILTER (WHERE basis <> 'none'),
       (SELECT count(*) FROM bill_rate), (SELECT max(struck_at) FROM price_strike),
       (SELECT json_agg(o ORDER BY day)::text FROM calendar_override o)
  FROM auction
"""
_RATES = "SELECT day, weeks, discount_milli, coupon_milli FROM bill_rate ORDER BY day, weeks"
_STRIKES = """
SELECT DISTINCT ON (day) day, struck_at, oldest_at, points::text AS points
  FROM price_strike ORDER BY day, struck_at DESC
"""
_points = msgspec.json.Decoder(tuple[CurvePoint, ...])
_OVERRIDES = "SELECT day, bond_market, closes_at, fed, reason FROM calendar_override ORDER BY day"
_SAVE_OVERRIDE = """
INSERT INTO calendar_override (day, bond_market, closes_at, fed, reason)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (day) DO UPDATE
   SET bond_market = coalesce(excluded.bond_market, calendar_override.bond_market),
       closes_at = CASE WHEN excluded.bond_market = 'closed' THEN NULL
                        ELSE coalesce(excluded.closes_at, calendar_override.closes_at) END,
       fed = coalesce(excluded.fed, calendar_override.fed),
       reason = excluded.reason
RETURNING day, bond_market, closes_at, fed, reason
"""
_REMOVE_OVERRIDE = "DELETE FROM calendar_override WHERE day = $1 RETURNING true"


class CalendarOverride(msgspec.Struct, frozen=True):
    """The operator's override of one day: open or closed, and an early close. None keeps the calendar's value."""

    day: date
    bond_market: str | None
    closes_at: time | None
    fed: str | None
    reason: str

    @property
    def of_day(self) -> DayOverride:
        """The override as the calendars take it."""
        is_open = {"open": True, "closed": False, None: None}
        return DayOverride(fed_open=is_open[self.fed], bond_open=is_open[self.bond_market], closes=self.closes_at)


async def load_market(
    conn: Connection, *, age_max_days: int | None = None, quotes_age_max: timedelta | None = None
) -> Market:
    """Return the market of everything on record, calendars included. Raises ValueError when no rate is.

    Runs in a transaction with one snapshot, so that no import falls in between.
    """
    version = await market_version(conn)
    market = Market(
        await load_calendars(conn),
        await list_securities(conn),
        await list_auctions(conn),
        rates=await list_daily_rates(conn),
        age_max_days=age_max_days,
        strikes=await list_strikes(conn) if quotes_age_max else (),
        quotes_age_max=quotes_age_max,
    )
    market.version = version
    return market


async def market_version(conn: Db) -> tuple[object, ...]:
    """Return the version of the rows that a market read now would be built from."""
    (row,) = await conn.fetch(_VERSION)
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


async def list_strikes(conn: Connection) -> list[PriceStrike]:
    """Return the last composite of each day, oldest first."""
    rows = await conn.fetch(_STRIKES)
    return [PriceStrike(row["day"], row["struck_at"], row["oldest_at"], _points.decode(row["points"])) for row in rows]


async def list_overrides(conn: Connection) -> list[CalendarOverride]:
    """Return every override, earliest day first."""
    return [CalendarOverride(*row) for row in await conn.fetch(_OVERRIDES)]


async def load_calendars(conn: Connection) -> Calendars:
    """Return the calendars with every override on record."""
    overrides = await list_overrides(conn)
    return Calendars({each.day: each.of_day for each in overrides})


async def save_override(conn: Connection, override: CalendarOverride) -> CalendarOverride:
    """Override a day, adding to an earlier override of it; return the combined override.

    Raises asyncpg.CheckViolationError for an early close of a day that is overridden as closed.
    """
    values = override.day, override.bond_market, override.closes_at, override.fed, override.reason
    (row,) = await conn.fetch(_SAVE_OVERRIDE, *values)
    return CalendarOverride(*row)


async def remove_override(conn: Connection, day: date) -> bool:
    """Remove the override of a day; return whether there was one."""
    return bool(await conn.fetchval(_REMOVE_OVERRIDE, day))
