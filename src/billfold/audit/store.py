"""Reading the log of a customer. Each page is one statement by index, whatever the history."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from billfold.audit.types import AuditEntry, EntryFilter

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection, Pool

COLUMNS = (
    "customer_id, entry_no, entry_id, recorded_at, actor, member_id, actor_name, client_id, action,"
    " resource_type, resource_id, outcome, ip_address, user_agent, details, hash"
)
_PREFETCH = 1_000
Place = tuple[datetime, int]
"""Where an entry stands: when it was recorded, and its number."""


async def list_entries(
    conn: Connection | Pool,
    entry_filter: EntryFilter,
    place: Place | None = None,
    *,
    descending: bool = True,
    limit: int,
) -> list[AuditEntry]:
    """Return up to `limit` entries on from a place, newest first unless not `descending`."""
    values: list[Any] = [entry_filter.customer_id]
    where = ["customer_id = $1"]

    def add_condition(condition: str, *arguments: object) -> None:
        numbers = [f"${len(values) + n}" for n in range(1, len(arguments) + 1)]
        where.append(condition.format(*numbers))
        values.extend(arguments)

    if entry_filter.member_id is not None:
        add_condition("member_id = {}", entry_filter.member_id)
    if entry_filter.since is not None:
        add_condition("recorded_at >= {}", entry_filter.since)
    if entry_filter.until is not None:
        add_condition("recorded_at < {}", entry_filter.until)
    if place is not None:
        add_condition(f"(recorded_at, entry_no) {'<' if descending else '>'} ({{}}, {{}})", *place)
    direction = "DESC" if descending else "ASC"
    values.append(limit)
    rows = await conn.fetch(
        f"SELECT {COLUMNS} FROM audit_entry WHERE {' AND '.join(where)}"
        f" ORDER BY recorded_at {direction}, entry_no {direction} LIMIT ${len(values)}",
        *values,
    )
    return [_entry(row) for row in rows]


async def iterate_all_entries(conn: Connection, *, timeout_seconds: float) -> AsyncIterator[AuditEntry]:
    """Yield the entries of all customers, each customer's in their order; in a transaction."""
    statement = f"SELECT {COLUMNS} FROM audit_entry ORDER BY customer_id, entry_no"
    async for row in conn.cursor(statement, prefetch=_PREFETCH, timeout=timeout_seconds):
        yield _entry(row)


def _entry(row: Record) -> AuditEntry:
    return msgspec.convert(dict(row), AuditEntry)
