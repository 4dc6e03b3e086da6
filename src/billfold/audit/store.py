"""Reading the log of a customer. Each page is one statement by index, whatever the history."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from asyncpg import Record

from billfold.audit.rules import AuditEntry, EntryFilter
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.paging import KeysetList, Place

COLUMNS = ", ".join(AuditEntry.__struct_fields__)
_PREFETCH = 1_000
_FILTERED = f"""
SELECT {COLUMNS} FROM audit_entry
 WHERE customer_id = $1 AND recorded_at >= coalesce($2::timestamptz, '-infinity')
   AND recorded_at < coalesce($3::timestamptz, 'infinity')
"""


def _entry(row: Record) -> AuditEntry:
    return msgspec.convert(dict(row), AuditEntry)


_ORDER = {"recorded_at": "timestamptz", "entry_no": "bigint"}
# Two statements: which index serves depends on whether there is a member.
_OF_ALL = KeysetList(_FILTERED + " AND {page}", _entry, **_ORDER)
_OF_MEMBER = KeysetList(_FILTERED + " AND member_id = $4 AND {page}", _entry, **_ORDER)


def filtered_list(entry_filter: EntryFilter) -> tuple[KeysetList[AuditEntry], tuple[Any, ...]]:
    """Return the list of the entries of a filter, newest first, and the values it takes."""
    values = entry_filter.customer_id, entry_filter.since, entry_filter.until
    if entry_filter.member_id is None:
        return _OF_ALL, values
    return _OF_MEMBER, (*values, entry_filter.member_id)


async def list_entries(
    conn: Connection | Pool,
    entry_filter: EntryFilter,
    place: Place | None = None,
    *,
    descending: bool = True,
    limit: int,
) -> list[AuditEntry]:
    """Return up to `limit` entries on from a place, newest first unless not `descending`."""
    listed, values = filtered_list(entry_filter)
    return await listed.rows(conn, *values, after=place, descending=descending, limit=limit)


async def iterate_all_entries(conn: Connection, *, timeout_seconds: float) -> AsyncIterator[AuditEntry]:
    """Yield the entries of all customers, each customer's in their order; in a transaction."""
    statement = f"SELECT {COLUMNS} FROM audit_entry ORDER BY customer_id, entry_no"
    async for row in conn.cursor(statement, prefetch=_PREFETCH, timeout=timeout_seconds):
        yield _entry(row)
