"""Queries of suspense items."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from billfold.payments.suspense.commands import SuspenseItem
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import NotFound

_COLUMNS = ", ".join(SuspenseItem.__struct_fields__)
_SOME = f"SELECT {_COLUMNS} FROM suspense_item WHERE item_id = ANY($1::uuid[])"
_LOOK_UP = f"""
SELECT {_COLUMNS} FROM suspense_item
 WHERE customer_id = ANY($1::uuid[]) AND item_id = ANY($2::uuid[])
"""
_LIST = f"""
SELECT {_COLUMNS} FROM suspense_item WHERE $1::text IS NULL OR status = $1
 ORDER BY created_at, written_no LIMIT $2
"""


async def get_item(conn: Connection | Pool, item_id: UUID) -> SuspenseItem:
    """Return an item, held or not any more. Raises NotFound."""
    found = await find_items(conn, [item_id])
    if not found:
        raise NotFound("There is no such suspense item.")
    return found[0]


async def find_items(conn: Connection | Pool, item_ids: Sequence[UUID]) -> list[SuspenseItem]:
    """Return the items with these ids."""
    return [SuspenseItem(**row) for row in await conn.fetch(_SOME, list(item_ids))]


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the items among the ids, as rules see them."""
    rows = await conn.fetch(_LOOK_UP, customer_ids, ids)
    return [(row[0], row[1], SuspenseItem(**row)) for row in rows]


async def list_items(conn: Connection | Pool, *, status: str | None = None, limit: int = 500) -> list[SuspenseItem]:
    """Return the items with this status, or all, oldest first."""
    return [SuspenseItem(**row) for row in await conn.fetch(_LIST, status, limit)]
