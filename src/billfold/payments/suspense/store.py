"""Queries of suspense items."""

from collections.abc import Sequence
from uuid import UUID

from billfold.payments.suspense.rules import SuspenseItem
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table

_items = Table(SuspenseItem, key=("item_id",))
_SOME = f"{_items.select} WHERE item_id = ANY($1::uuid[])"
_LIST = f"{_items.select} WHERE $1::text IS NULL OR status = $1 ORDER BY created_at, written_no LIMIT $2"
get_item = _items.get
load_references = _items.load_references


async def find_items(conn: Db, item_ids: Sequence[UUID]) -> list[SuspenseItem]:
    """Return the items with these ids."""
    return await _items.all(conn, _SOME, list(item_ids))


async def list_items(conn: Db, *, status: str | None = None, limit: int = 500) -> list[SuspenseItem]:
    """Return the items with this status, or all, oldest first."""
    return await _items.all(conn, _LIST, status, limit)
