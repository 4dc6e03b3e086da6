"""Counts what a partner's customers and programs do by day: pages read days, however many payments there are.

One worker at a time counts today again each minute, and as a day begins also those before it: due work is booked late.
"""

from datetime import date, datetime, timedelta
from uuid import UUID

import structlog

from billfold.bills.rules.market import Market
from billfold.identity.partners.store import list_partners
from billfold.ledger.bank import Bank
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import locked
from billfold.platform.database.connection import Connection
from billfold.platform.database.shortage import error_summary
from billfold.platform.dates import et_date, et_instant
from billfold.platform.money import cents_for

log = structlog.get_logger(__name__)
SECONDS = 60.0
_SHARE = 30
"""A round that takes a second is repeated after this many at the earliest."""
_LOCK = 0x70646179  # "pday"
_FIRST, _AGAIN, _NONE = timedelta(days=92), timedelta(days=7), timedelta(0)
"""How far back a partner's first count reaches, and that of a new day; requests are kept for days and counted once."""
_DAY = "(%s AT TIME ZONE 'America/New_York')::date"
_VOLUMES = f"""
SELECT type, {_DAY % "booked_at"}, count(*), coalesce(sum(amount) FILTER (WHERE direction = 'CREDIT'), 0)::bigint,
       coalesce(sum(amount) FILTER (WHERE direction = 'DEBIT'), 0)::bigint, 0, 0
  FROM transaction WHERE partner_id = $1 AND booked_at >= $2 AND type IN ('ACH', 'WIRE', 'CARD') GROUP BY 1, 2
"""
_DEBITS = f"""
SELECT 'DEBITS', {_DAY % "created_at"}, count(*), sum(amount)::bigint, 0, 0, 0
  FROM ach_entry WHERE partner_id = $1 AND way = 'ORIGINATION' AND created_at >= $2 AND direction = 'DEBIT'
       AND trace_number IS NOT NULL AND status NOT IN ('REJECTED', 'CANCELLED') GROUP BY 1, 2
"""
_REQUESTS = f"""
SELECT 'REQUESTS', {_DAY % "requested_at"}, count(*), 0, 0, count(*) FILTER (WHERE status BETWEEN 400 AND 499),
       count(*) FILTER (WHERE status >= 500)
  FROM request_log WHERE tenant_id = $1 AND requested_at >= $2 GROUP BY 1, 2
"""
_DELIVERIES = f"""
SELECT 'DELIVERIES', {_DAY % "a.called_at"}, count(*), 0, 0, count(*) FILTER (WHERE NOT a.success), 0
  FROM subscription s JOIN delivery_attempt a USING (subscription_id)
 WHERE s.partner_id = $1 AND s.customer_id IS NULL AND a.called_at >= $2 GROUP BY 1, 2
"""
_HELD = """
SELECT a.asset, sum(a.credits - a.debits)::bigint FROM customer c JOIN account a USING (customer_id)
 WHERE c.partner_id = $1 AND a.live AND a.kind IN ('cash', 'lot') GROUP BY a.asset
"""
_CUSTOMERS = """
SELECT count(*) FROM customer WHERE partner_id = $1 AND role = 'customer' AND account_status IN ('OPEN', 'FROZEN')
"""
_LAST = "SELECT day FROM partner_day WHERE partner_id = $1 AND subject = $2 ORDER BY day DESC LIMIT 1"
_FORGET = """
DELETE FROM partner_day WHERE partner_id = $1 AND subject = ANY($2::text[]) AND day >= $3
RETURNING subject, day, items, cents_in, cents_out, refused, failed
"""
_COLUMNS = ("partner_id", "subject", "day", "items", "cents_in", "cents_out", "refused", "failed", "counted_at")


class ActivityCounter:
    """The counting of one worker."""

    def __init__(self) -> None:
        self._next_at = 0.0

    async def count(self, bank: Bank) -> int:
        """Count the days of every partner, unless it was done lately or another worker does it."""
        began = monotonic()
        if began < self._next_at:
            return 0
        try:
            async with locked(bank.pool, _LOCK) as conn:
                if conn is not None:
                    await _count_partners(conn, bank.market, now=await bank.now(conn), wall=wall_now())
        finally:
            ended = monotonic()
            self._next_at = ended + max(SECONDS, _SHARE * (ended - began))
        return 0


async def _count_partners(conn: Connection, market: Market, *, now: datetime, wall: datetime) -> None:
    """Count the days of each partner up to `now`, business time, those of requests and deliveries up to `wall`."""
    for partner in await list_partners(conn):
        try:
            await _count_days(conn, partner.partner_id, market, now=now, wall=wall)
        except Exception as error:  # noqa: BLE001 - the other partners are counted
            log.warning("partner_days_failed", error=error_summary(error), partner_id=partner.partner_id)


async def _count_days(conn: Connection, owner: UUID, market: Market, *, now: datetime, wall: datetime) -> None:
    today, wall_day = et_date(now), et_date(wall)
    booked = await _since(conn, owner, "CUSTODY", today, again=_AGAIN)
    logged = await _since(conn, owner, "REQUESTS", wall_day, again=_NONE)
    counted = {("CUSTODY", today): await _custody(conn, owner, market, now), ("REQUESTS", wall_day): (0,) * 5}
    for statement, since in ((_VOLUMES, booked), (_DEBITS, booked), (_REQUESTS, logged), (_DELIVERIES, logged)):
        rows = await conn.fetch(statement, owner, et_instant(since, 0))
        counted |= {(subject, day): tuple(counts) for subject, day, *counts in rows}
    async with conn.transaction():
        await conn.execute(_FORGET, owner, ["ACH", "WIRE", "CARD", "DEBITS"], booked)
        await conn.execute(_FORGET, owner, ["CUSTODY"], today)
        # What the log no longer has was counted while it did.
        for subject, day, *counts in await conn.fetch(_FORGET, owner, ["REQUESTS", "DELIVERIES"], logged):
            counted[subject, day] = max(tuple(counts), counted.get((subject, day), ()))
        records = [(owner, subject, day, *counts, wall) for (subject, day), counts in counted.items()]
        await conn.copy_records_to_table("partner_day", records=records, columns=_COLUMNS)


async def _since(conn: Connection, partner_id: UUID, subject: str, day: date, *, again: timedelta) -> date:
    """Return the first day to count: today, or days before it if it is new."""
    last = await conn.fetchval(_LAST, partner_id, subject)
    if last is None:
        return day - _FIRST
    return day if last == day else min(last - again, day)


async def _custody(conn: Connection, partner_id: UUID, market: Market, now: datetime) -> tuple[int, ...]:
    """Return the number of customers and the value of their cash and bills at the last tick."""
    prices = market.tick_prices(now)
    held = await conn.fetch(_HELD, partner_id)
    cents = sum(units if asset == "USD" else cents_for(units, prices[asset].mark_micros) for asset, units in held)
    return await conn.fetchval(_CUSTOMERS, partner_id), cents, 0, 0, 0
