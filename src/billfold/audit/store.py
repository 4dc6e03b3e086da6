"""Reading the log of a customer. Each page is one statement by index, whatever the history."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from billfold.audit.types import Recorded, Wanted

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection, Pool

COLUMNS = (
    "customer_id, entry_no, entry_id, recorded_at, actor, member_id, actor_name, client_id, action,"
    " resource_type, resource_id, outcome, ip_address, user_agent, details, hash"
)
_AT_ONCE = 1_000
Place = tuple[datetime, int]
"""Where an entry stands: when it was recorded, and its number."""


async def list_entries(
    conn: Connection | Pool,
    wanted: Wanted,
    place: Place | None = None,
    *,
    descending: bool = True,
    limit: int,
) -> list[Recorded]:
    """Return up to `limit` entries on from a place, newest first unless told otherwise."""
    values: list[Any] = [wanted.customer_id]
    where = ["customer_id = $1"]

    def ask(condition: str, *given: object) -> None:
        numbers = [f"${len(values) + n}" for n in range(1, len(given) + 1)]
        where.append(condition.format(*numbers))
        values.extend(given)

    if wanted.member_id is not None:
        ask("member_id = {}", wanted.member_id)
    if wanted.since is not None:
        ask("recorded_at >= {}", wanted.since)
    if wanted.until is not None:
        ask("recorded_at < {}", wanted.until)
    if place is not None:
        ask(f"(recorded_at, entry_no) {'<' if descending else '>'} ({{}}, {{}})", *place)
    way = "DESC" if descending else "ASC"
    values.append(limit)
    rows = await conn.fetch(
        f"SELECT {COLUMNS} FROM audit_entry WHERE {' AND '.join(where)}"
        f" ORDER BY recorded_at {way}, entry_no {way} LIMIT ${len(values)}",
        *values,
    )
    return [_entry(row) for row in rows]


async def all_chains(conn: Connection, *, timeout_seconds: float) -> AsyncIterator[Recorded]:
    """Yield the entries of all customers, each customer's in their order; in a transaction."""
    statement = f"SELECT {COLUMNS} FROM audit_entry ORDER BY customer_id, entry_no"
    async for row in conn.cursor(statement, prefetch=_AT_ONCE, timeout=timeout_seconds):
        yield _entry(row)


def _entry(row: Record) -> Recorded:
    return msgspec.convert(dict(row), Recorded)
