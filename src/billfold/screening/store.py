"""Rows of sanctions lists and their entries. Of the lists that were imported one is current; its entries are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from billfold.screening.types import ListEntry, ListRow

if TYPE_CHECKING:
    from uuid import UUID

    from asyncpg import Record

    from billfold.platform.database.connection import (Connection, Pool)

_COLUMNS = ", ".join(ListRow.__struct_fields__)
_CURRENT = f"SELECT {_COLUMNS} FROM sanctions_list WHERE is_current"
_LISTS = f"SELECT {_COLUMNS} FROM sanctions_list ORDER BY imported_at DESC LIMIT $1"
_RETIRE = "UPDATE sanctions_list SET is_current = false WHERE is_current"
_CLEAR = "DELETE FROM sanctions_entry"
_INSERT = f"INSERT INTO sanctions_list ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)"
_ENTRIES = "SELECT content FROM sanctions_entry WHERE list_id = $1 ORDER BY uid"
_ENTRY = "SELECT content FROM sanctions_entry WHERE uid = $1"
_LOCK = "LOCK TABLE sanctions_list IN SHARE ROW EXCLUSIVE MODE"
_BATCH = 2_000
_decode = msgspec.json.Decoder(ListEntry).decode


async def find_current(conn: Connection | Pool) -> ListRow | None:
    """Return the list in force, or None before the first import."""
    found = await conn.fetchrow(_CURRENT)
    return None if found is None else _row(found)


async def list_imported(conn: Connection | Pool, limit: int) -> list[ListRow]:
    """Return the lists that were imported, the last one first."""
    return [_row(each) for each in await conn.fetch(_LISTS, limit)]


async def lock_lists(conn: Connection) -> None:
    """Let nobody else import a list until the transaction ends; the current one can be read."""
    await conn.execute(_LOCK)


async def replace_list(
    conn: Connection, row: ListRow, entries: tuple[ListEntry, ...], progress: Callable[[int], None]
) -> None:
    """Put a list in the place of the current one."""
    await conn.execute(_RETIRE)
    await conn.execute(_CLEAR)
    await conn.execute(_INSERT, *msgspec.structs.astuple(row))
    for start in range(0, len(entries), _BATCH):
        batch = [(row.list_id, each.uid, msgspec.json.encode(each)) for each in entries[start : start + _BATCH]]
        await conn.copy_records_to_table("sanctions_entry", records=batch, columns=("list_id", "uid", "content"))
        progress(start + len(batch))


async def load_entries(conn: Connection | Pool, list_id: UUID) -> list[ListEntry]:
    """Return the entries of a list, by their uids."""
    return [_decode(each["content"]) for each in await conn.fetch(_ENTRIES, list_id)]


async def find_entry(conn: Connection | Pool, uid: int) -> ListEntry | None:
    """Return an entry of the current list, or None."""
    content = await conn.fetchval(_ENTRY, uid)
    return None if content is None else _decode(content)


def _row(record: Record) -> ListRow:
    return ListRow(**dict(record))
