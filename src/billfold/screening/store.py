"""The imported sanctions lists, one of which is current, and the backlog of subjects to screen."""

import hashlib
from collections.abc import Callable, Collection
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.platform import ids
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import Table
from billfold.screening.ofac_sdn import Progress, read_csv, read_xml
from billfold.screening.types import FILE_BYTES_MAX, InvalidList, ListEntry, ListRow, SanctionsList

_ENUMERATED = "UPDATE sanctions_list SET is_enumerated = true WHERE is_current AND NOT is_enumerated RETURNING list_id"
_ENUMERATE = """
INSERT INTO sanctions_backlog (is_counterparty, subject_id, customer_id, turn)
SELECT false, customer_id, customer_id, 0 FROM customer WHERE role <> 'house' AND account_status <> 'CLOSED'
UNION ALL
SELECT false, applicant_id, applicant_id, 0 FROM application
 WHERE submitted_at IS NOT NULL AND status NOT IN ('APPROVED', 'REJECTED', 'CLOSED')
UNION ALL
SELECT true, counterparty_id, customer_id, row_number() OVER (PARTITION BY customer_id ORDER BY counterparty_id)
  FROM counterparty JOIN customer USING (customer_id) WHERE status <> 'UNLINKED' AND account_status <> 'CLOSED'
ON CONFLICT (subject_id) DO NOTHING
"""
_NEXT = """
SELECT is_counterparty, subject_id, customer_id FROM sanctions_backlog
 WHERE subject_id <> ALL($1::uuid[]) ORDER BY turn, subject_id LIMIT $2
"""
_DONE = "DELETE FROM sanctions_backlog WHERE subject_id = ANY($1::uuid[])"
_COUNT = "SELECT count(*) FROM sanctions_backlog"


class Task(NamedTuple):
    """A counterparty, or a customer or applicant with its related parties, to be screened."""

    is_counterparty: bool
    subject_id: UUID
    customer_id: UUID


async def enumerate_list(conn: Connection) -> None:
    """Add all subjects to the backlog, once for each imported list."""
    async with conn.transaction():
        if await conn.fetchval(_ENUMERATED) is not None:
            await conn.execute(_ENUMERATE)


async def list_next(conn: Db, limit: int, *, except_for: Collection[UUID]) -> list[Task]:
    """Return the next subjects."""
    return [Task(*row) for row in await conn.fetch(_NEXT, except_for, limit)]


async def complete_subjects(conn: Db, subject_ids: Collection[UUID]) -> None:
    """Remove screened subjects from the backlog."""
    await conn.execute(_DONE, subject_ids)


async def count_left(conn: Db) -> int:
    """Return the size of the backlog."""
    left: int = await conn.fetchval(_COUNT)
    return left


_lists = Table(ListRow, "sanctions_list", key=("list_id",))
_CURRENT = f"{_lists.select} WHERE is_current"
_LISTS = f"{_lists.select} ORDER BY imported_at DESC LIMIT $1"
_RETIRE = "UPDATE sanctions_list SET is_current = false WHERE is_current"
_CLEAR = "DELETE FROM sanctions_entry"
_ENTRIES = "SELECT content FROM sanctions_entry WHERE list_id = $1 ORDER BY uid"
_ENTRY = "SELECT content FROM sanctions_entry WHERE uid = $1"
_LOCK = "LOCK TABLE sanctions_list IN SHARE ROW EXCLUSIVE MODE"
_BATCH = 2_000
_decode = msgspec.json.Decoder(ListEntry).decode


async def find_current(conn: Db) -> ListRow | None:
    """Return the list in force, or None before the first import."""
    return await _lists.first(conn, _CURRENT)


async def list_imported(conn: Db, limit: int) -> list[ListRow]:
    """Return the imported lists, latest first."""
    return await _lists.all(conn, _LISTS, limit)


async def lock_lists(conn: Connection) -> None:
    """Block other imports until the transaction ends; the current list can still be read."""
    await conn.execute(_LOCK)


async def replace_list(
    conn: Connection, row: ListRow, entries: tuple[ListEntry, ...], progress: Callable[[int], None]
) -> None:
    """Replace the current list."""
    await conn.execute(_RETIRE)
    await conn.execute(_CLEAR)
    await _lists.insert(conn, row)
    for start in range(0, len(entries), _BATCH):
        batch = [(row.list_id, each.uid, msgspec.json.encode(each)) for each in entries[start : start + _BATCH]]
        await conn.copy_records_to_table("sanctions_entry", records=batch, columns=("list_id", "uid", "content"))
        progress(start + len(batch))


async def load_entries(conn: Db, list_id: UUID) -> list[ListEntry]:
    """Return the entries of a list, by their uids."""
    return [_decode(each["content"]) for each in await conn.fetch(_ENTRIES, list_id)]


async def find_entry(conn: Db, uid: int) -> ListEntry | None:
    """Return an entry of the current list, or None."""
    content = await conn.fetchval(_ENTRY, uid)
    return None if content is None else _decode(content)


def read_list(path: Path, published_on: date | None = None, progress: Progress | None = None) -> SanctionsList:
    """Return the list in an XML file, or in an sdn.csv with the files next to it, which do not say their date.

    Raises InvalidList, OSError.
    """
    files = [path.with_name(name) for name in ("sdn.csv", "alt.csv", "add.csv")] if path.name == "sdn.csv" else [path]
    if sum(each.stat().st_size for each in files if each.exists()) > FILE_BYTES_MAX:
        raise InvalidList(f"is larger than {FILE_BYTES_MAX // 1024**2} MB", file=path.name)
    if path.suffix.lower() == ".xml":
        return read_xml(path, progress)
    if path.name != "sdn.csv":
        raise InvalidList("is neither an .xml file nor sdn.csv", file=path.name)
    if published_on is None:
        raise InvalidList("does not say when it was published", file=path.name)
    return read_csv(path, published_on, progress)


async def replace_current(
    conn: Connection, read: SanctionsList, *, now: datetime, progress: Callable[[int], None] = lambda _: None
) -> ListRow | None:
    """Replace the current list; None if the new one is identical. Raises InvalidList for an older one.

    In one transaction; until it ends, the previous list is read. `now` is wall time.
    """
    async with conn.transaction():
        return await _replace(conn, read, now=now, progress=progress)


async def _replace(
    conn: Connection, read: SanctionsList, *, now: datetime, progress: Callable[[int], None]
) -> ListRow | None:
    await lock_lists(conn)
    current = await find_current(conn)
    if current is not None and current.published_on > read.published_on:
        raise InvalidList(f"was published on {read.published_on}, before the current list of {current.published_on}")
    digest = hashlib.sha256(msgspec.json.encode(read)).hexdigest()
    if current is not None and current.digest == digest:
        return None
    row = ListRow(
        list_id=ids.new(),
        published_on=read.published_on,
        digest=digest,
        entry_count=len(read.entries),
        name_count=sum(len(each.names) for each in read.entries),
        is_current=True,
        imported_at=now,
    )
    await replace_list(conn, row, read.entries, progress)
    return row
