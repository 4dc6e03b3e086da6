"""A list is imported: read whole, then put in the place of the current one in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from billfold.screening import store
from billfold.screening.sdn_csv import read_csv
from billfold.screening.sdn_xml import Progress, read_xml
from billfold.screening.types import FILE_BYTES_MAX, InvalidList, ListRow, SanctionsList
from billfold.platform import ids

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection)


def read_list(path: Path, published_on: date | None = None, progress: Progress | None = None) -> SanctionsList:
    """Return the list in an XML file, or in an sdn.csv with the files beside it, which do not say their date.

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
    """Put a list in the place of the current one; None when it says the same. Raises InvalidList for an older one.

    In one transaction; until its end the former list is read. `now` is wall time.
    """
    async with conn.transaction():
        return await _replace(conn, read, now=now, progress=progress)


async def _replace(
    conn: Connection, read: SanctionsList, *, now: datetime, progress: Callable[[int], None]
) -> ListRow | None:
    await store.lock_lists(conn)
    current = await store.find_current(conn)
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
    await store.replace_list(conn, row, read.entries, progress)
    return row
