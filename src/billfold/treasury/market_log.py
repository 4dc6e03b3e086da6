"""The log of the market: what its rows come to, left by the transaction that writes them.

The log is a chain of the audit log, sealed with the chains of customers. An entry holds the fingerprints of the rows
that a transaction changed: of a bill, of an auction, of all rates or closing prices of a day, of an overridden day.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from itertools import groupby
from uuid import UUID

from billfold.audit.record import record_all
from billfold.audit.rules import NewEntry
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Pool

MARKET_LOG = UUID("00000000-0000-8000-8000-6d61726b6574")
"""Whose log it is: that of no customer. The last digits spell its name."""
KEYS = {
    "security": ("cusip",),
    "auction": ("cusip", "issue_date"),
    "bill_rate": ("day",),
    "calendar_override": ("day",),
    "closing_price": ("business_date",),
}
"""Table -> what tells the rows of one fingerprint from the others."""
RESOURCE = "market"
_CHANGE = "market.change"
_ROWS_PER_ENTRY = 100
# Two tables that are changed stand for the market; the others are only added to, and may not be locked by whoever may
# not change them.
_LOCK = "LOCK TABLE auction, calendar_override IN SHARE ROW EXCLUSIVE MODE"
_SINCE_CHANGE = """
SELECT extract(epoch FROM clock_timestamp() - recorded_at)::float8 FROM audit_entry
 WHERE customer_id = $1 AND action = $2 ORDER BY recorded_at DESC LIMIT 1
"""
_IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM audit_entry WHERE customer_id = $1)"
Place = tuple[str, str]
"""A table, and the key in it."""


def _fingerprints_of(table: str, where: str = "true") -> str:
    """Return the query of a table's fingerprints; an empty column is left out, so a later one changes nothing.

    OFFSET 0: what a row comes to is computed once, not at each place that uses it.
    """
    key = ", ".join(f"content->>'{name}'" for name in KEYS[table])
    return f"""
      SELECT '{table}' AS kind, concat_ws('/', {key}) AS key,
             left(encode(sha256(convert_to(string_agg(content::text, ',' ORDER BY content::text), 'UTF8')), 'hex'), 32)
               AS fingerprint, count(*) AS number
        FROM (SELECT jsonb_strip_nulls(to_jsonb(t)) AS content FROM {table} t WHERE {where} OFFSET 0) AS each
       GROUP BY 1, 2"""


FINGERPRINTS = " UNION ALL ".join(map(_fingerprints_of, KEYS))
"""The query of what all rows come to now."""
RECORDED = """
SELECT DISTINCT ON (t.key, p.key) t.key AS kind, p.key, p.value AS fingerprint
  FROM audit_entry a, json_each(a.details->'proves') t, json_each_text(t.value) p
 WHERE a.customer_id = $1 ORDER BY t.key, p.key, a.entry_no DESC
"""
"""The query of what the log says last about each; null: it was removed."""
_CLOSING_PRICES = _fingerprints_of("closing_price", "business_date = $1")


@asynccontextmanager
async def market_change(conn: Connection, vault: Vault, origin: Origin) -> AsyncIterator[None]:
    """Record what the work inside changes of the market, in the caller's transaction.

    Rows that were something else than recorded before stay so, unless the work writes them.
    """
    await conn.execute(_LOCK)
    before = await _read(conn, FINGERPRINTS)
    yield
    after = await _read(conn, FINGERPRINTS)
    changed = [each for each in before.keys() | after.keys() if before.get(each) != after.get(each)]
    await _record(conn, vault, origin, _CHANGE, {each: after.get(each) for each in changed})


async def seconds_since_change(conn: Connection | Pool) -> float:
    """Return how long ago the market was last changed, 0 if that is not on record."""
    age: float | None = await conn.fetchval(_SINCE_CHANGE, MARKET_LOG, _CHANGE)
    return age or 0


async def begin_market_log(conn: Connection, vault: Vault) -> None:
    """Record the whole market as it is, unless there is a log: that of a new bank, or of an earlier release's.

    In the caller's transaction.
    """
    await conn.execute(_LOCK)
    if await conn.fetchval(_IS_EMPTY, MARKET_LOG):
        await _record(conn, vault, Origin.system(), "market.begin", await _read(conn, FINGERPRINTS))


async def record_closing_prices(conn: Connection, vault: Vault, day: date) -> None:
    """Record the closing prices of a day, in the transaction that stores them."""
    await _record(conn, vault, Origin.system(), "market.close", await _read(conn, _CLOSING_PRICES, day))


async def _read(conn: Connection, query: str, *values: object) -> dict[Place, str]:
    return {(row["kind"], row["key"]): row["fingerprint"] for row in await conn.fetch(query, *values)}


async def _record(
    conn: Connection, vault: Vault, origin: Origin, action: str, fingerprints: Mapping[Place, str | None]
) -> None:
    places = sorted(fingerprints)
    entries = []
    for first in range(0, len(places), _ROWS_PER_ENTRY):
        tables = groupby(places[first : first + _ROWS_PER_ENTRY], key=lambda place: place[0])
        proves = {table: {key: fingerprints[table, key] for _, key in own} for table, own in tables}
        entries.append(
            NewEntry(
                customer_id=MARKET_LOG,
                origin=origin,
                action=action,
                resource_type=RESOURCE,
                details={"proves": proves},
            )
        )
    await record_all(conn, vault, entries, now=wall_now())
