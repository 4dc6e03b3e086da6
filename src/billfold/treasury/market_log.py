"""The audit log of market data, its checks, and the refresh of running processes.

The log is a chain of the audit log, sealed with the chains of customers. An entry holds the fingerprints of the rows
that a transaction changed: of a bill, of an auction, of all rates or closing prices of a day, of an overridden day,
of a composite of quotes.

An import or an override is noticed within `REFRESH_SECONDS`. New bills are known at once; they are bought, and new
prices used, `IN_USE_AFTER_SECONDS` after the change: by then every process knows every bill that another may buy.
All processes switch at the same instant, by the database clock, so nobody can buy at the old prices in one process
and sell at the new ones in another.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import date, datetime
from itertools import groupby
from uuid import UUID

import structlog

from billfold.audit.record import record_all
from billfold.audit.rules import NewEntry
from billfold.bills.rules.market import Market
from billfold.bills.store import load_market, market_version
from billfold.ledger.types import Origin
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.background_work import retry_now
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.shortage import error_summary

MARKET_LOG = UUID("00000000-0000-8000-8000-6d61726b6574")
"""Owner id of the log, which belongs to no customer. The last digits spell its name."""
KEYS = {
    "security": ("cusip",),
    "auction": ("cusip", "issue_date"),
    "bill_rate": ("day",),
    "calendar_override": ("day",),
    "closing_price": ("business_date",),
    "price_strike": ("struck_at",),
}
"""Table -> the columns that identify the rows of one fingerprint."""
RESOURCE = "market"
_CHANGE = "market.change"
_ROWS_PER_ENTRY = 100
# Locking the two tables that are updated locks the market; the others are insert-only, and a role without
# the right to change them may not lock them.
_LOCK = "LOCK TABLE auction, calendar_override IN SHARE ROW EXCLUSIVE MODE"
_SINCE_CHANGE = """
SELECT extract(epoch FROM clock_timestamp() - recorded_at)::float8 FROM audit_entry
 WHERE customer_id = $1 AND action = $2 ORDER BY recorded_at DESC LIMIT 1
"""
_IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM audit_entry WHERE customer_id = $1)"
Place = tuple[str, str]
"""A table, and the key in it."""


def _fingerprints_of(table: str, where: str = "true") -> str:
    """Return the query of a table's fingerprints; null columns are omitted, so adding a column changes nothing.

    OFFSET 0: the fingerprint of a row is computed once, not at each place that uses it.
    """
    key = ", ".join(f"content->>'{name}'" for name in KEYS[table])
    return f"""
      SELECT '{table}' AS kind, concat_ws('/', {key}) AS key,
             left(encode(sha256(convert_to(string_agg(content::text, ',' ORDER BY content::text), 'UTF8')), 'hex'), 32)
               AS fingerprint, count(*) AS number
        FROM (SELECT jsonb_strip_nulls(to_jsonb(t)) AS content FROM {table} t WHERE {where} OFFSET 0) AS each
       GROUP BY 1, 2"""


FINGERPRINTS = " UNION ALL ".join(map(_fingerprints_of, KEYS))
"""The query of the current fingerprints of all rows."""
RECORDED = """
SELECT DISTINCT ON (t.key, p.key) t.key AS kind, p.key, p.value AS fingerprint
  FROM audit_entry a, json_each(a.details->'proves') t, json_each_text(t.value) p
 WHERE a.customer_id = $1 ORDER BY t.key, p.key, a.entry_no DESC
"""
"""The query of the last fingerprint in the log for each row; null if it was removed."""
# Composites of dealers' quotes are many, and recorded with each: an import of rates does not read them all.
_OF_CHANGES = " UNION ALL ".join(_fingerprints_of(table) for table in KEYS if table != "price_strike")
_STRIKE = _fingerprints_of("price_strike", "struck_at = $1")
_CLOSING_PRICES = _fingerprints_of("closing_price", "business_date = $1")


@asynccontextmanager
async def market_change(conn: Connection, vault: Vault, origin: Origin) -> AsyncIterator[None]:
    """Record the changes that the enclosed work makes to the market, in the caller's transaction.

    Rows that already differed from the log keep differing, unless the work writes them.
    """
    await conn.execute(_LOCK)
    before = await _read_fingerprints(conn, _OF_CHANGES)
    yield
    after = await _read_fingerprints(conn, _OF_CHANGES)
    changed = [each for each in before.keys() | after.keys() if before.get(each) != after.get(each)]
    await _record_audit(conn, vault, origin, _CHANGE, {each: after.get(each) for each in changed})


async def seconds_since_change(conn: Db) -> float:
    """Return the seconds since the market was last changed, 0 if that is not on record."""
    age: float | None = await conn.fetchval(_SINCE_CHANGE, MARKET_LOG, _CHANGE)
    return age or 0


async def begin_market_log(conn: Connection, vault: Vault) -> None:
    """Record the whole market unless it has a log: for a new bank, or one from an earlier release.

    Runs in the caller's transaction.
    """
    await conn.execute(_LOCK)
    if await conn.fetchval(_IS_EMPTY, MARKET_LOG):
        await _record_audit(conn, vault, Origin.system(), "market.begin", await _read_fingerprints(conn, FINGERPRINTS))


async def record_closing_prices(conn: Connection, vault: Vault, day: date) -> None:
    """Record the closing prices of a day, in the transaction that stores them."""
    await _record_audit(
        conn, vault, Origin.system(), "market.close", await _read_fingerprints(conn, _CLOSING_PRICES, day)
    )


async def record_strike(conn: Connection, vault: Vault, origin: Origin, struck_at: datetime) -> None:
    """Record a composite of dealers' quotes, in the transaction that stores it."""
    await _record_audit(conn, vault, origin, _CHANGE, await _read_fingerprints(conn, _STRIKE, struck_at))


async def _read_fingerprints(conn: Connection, query: str, *values: object) -> dict[Place, str]:
    return {(row["kind"], row["key"]): row["fingerprint"] for row in await conn.fetch(query, *values)}


async def _record_audit(
    conn: Connection, vault: Vault, origin: Origin, action: str, fingerprints: Mapping[Place, str | None]
) -> None:
    places = sorted(fingerprints)
    entries = []
    for first in range(0, len(places), _ROWS_PER_ENTRY):
        tables = groupby(places[first : first + _ROWS_PER_ENTRY], key=lambda place: place[0])
        proves = {table: {key: fingerprints[table, key] for _, key in own} for table, own in tables}
        entries.append(
            NewEntry(
                customer_id=MARKET_LOG, origin=origin, action=action, resource_type=RESOURCE, details={"proves": proves}
            )
        )
    await record_all(conn, vault, entries, now=wall_now())


log = structlog.get_logger(__name__)

REFRESH_SECONDS = 2.0
IN_USE_AFTER_SECONDS = 4 * REFRESH_SECONDS


@asynccontextmanager
async def run_market_refresher(pool: Pool, market: Market) -> AsyncIterator[None]:
    """Refresh a market as long as the context lasts."""
    task = asyncio.create_task(MarketRefresher(pool, market).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class MarketRefresher:
    """Refreshes the market of a process, with one small query every `REFRESH_SECONDS`."""

    def __init__(self, pool: Pool, market: Market, *, activation_delay: float = IN_USE_AFTER_SECONDS) -> None:
        self._pool = pool
        self._market = market
        self._activation_delay = activation_delay
        self._pending: Market | None = None
        self._activates_at = 0.0

    async def run(self) -> None:
        """Refresh until cancelled. An unavailable database is waited for."""
        while True:
            await asyncio.sleep(self._pause())
            try:
                await self.refresh()
            except Exception as error:  # noqa: BLE001 - keep the current market if the refresh fails
                log.warning("market_refresh_failed", error=error_summary(error))

    async def refresh(self) -> None:
        """Read what was imported, and activate a pending market when it is due."""
        newest = self._pending or self._market
        if newest.version != await market_version(self._pool):
            self._pending = await self._read()
            self._market.add_bills_of(self._pending)
            age = await seconds_since_change(self._pool)
            self._activates_at = monotonic() + max(0, self._activation_delay - max(0, age))
        if self._pending is not None and monotonic() >= self._activates_at:
            self._market.replace_with(self._pending)
            self._pending = None
            await retry_now(self._pool, wall_now())
            log.info("market_refreshed", newest_rates=self._market.last_day)

    def _pause(self) -> float:
        """Return the seconds until the next refresh, which is due no later than the activation."""
        if self._pending is None:
            return REFRESH_SECONDS
        return min(REFRESH_SECONDS, max(0, self._activates_at - monotonic()))

    async def _read(self) -> Market:
        async with self._pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
            now = self._market
            newest = await load_market(conn, age_max_days=now.age_max_days, quotes_age_max=now.quotes_age_max)
        if newest.calendars.overrides == self._market.calendars.overrides:
            newest.calendars = self._market.calendars  # it has most days in its cache already
        return newest


_COMPARED = f"""
SELECT kind, key, number, found.fingerprint AS found, said.fingerprint AS said
  FROM ({FINGERPRINTS}) AS found FULL JOIN ({RECORDED}) AS said USING (kind, key)
 ORDER BY array_position($2::text[], kind), key
"""


async def check_market(conn: Connection, findings: Findings) -> None:
    """Compare each bill, auction, override, day of rates and day of closing prices with its last log entry."""
    rows = await conn.fetch(_COMPARED, MARKET_LOG, list(KEYS), timeout=STATEMENT_TIMEOUT_SECONDS)
    if all(row["said"] is None for row in rows):
        key = {"customer_id": MARKET_LOG, "entry_no": 1}
        findings.add("audit_entry", key, "the log of the market is missing", certainty=Certainty.MISSING)
        return
    for row in rows:
        findings.checked[row["kind"]] += row["number"] or 0
        found, said = row["found"], row["said"]
        if found == said:
            continue
        if found is None:
            message, certainty = "it has a fingerprint, but the row is missing", Certainty.MISSING
        elif said is None:
            message, certainty = "no import left its fingerprint", Certainty.UNEXPECTED
        else:
            message, certainty = "it differs from its last fingerprint", Certainty.CHANGED
        findings.add(row["kind"], _key(row["kind"], row["key"]), message, certainty=certainty)


def _key(table: str, key: str) -> dict[str, object]:
    named = zip(KEYS[table], key.split("/"), strict=True)
    read: dict[str, Callable[[str], object]] = {"cusip": str, "struck_at": datetime.fromisoformat}
    return {name: read.get(name, date.fromisoformat)(text) for name, text in named}
