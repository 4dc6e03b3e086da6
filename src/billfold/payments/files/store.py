"""Files of the rails, kept before anything is done with them, so that a crash loses none.

States: MADE -> HANDED of ours, ARRIVED -> TAKEN or REFUSED of theirs. A report says what came of
it: for a refused file the line and the reason, for one that cannot be finished what is wrong with
it (`troubles`). `now` is business time.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection, Pool

OUT, IN = "OUT", "IN"

COLUMNS = """file_id, rail, direction, name, encode(sha256, 'hex') AS sha256, state, report,
       length(content) AS size_bytes, created_at, done_at"""
_INSERT = f"""
INSERT INTO rail_file (file_id, rail, direction, name, content, sha256, state, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING {COLUMNS}
"""
_GET = f"SELECT {COLUMNS} FROM rail_file WHERE file_id = $1"
_DUPLICATE = """
SELECT name, created_at FROM rail_file
 WHERE rail = $1 AND sha256 = $2 AND direction = 'IN' AND state <> 'REFUSED' AND file_id <> $3
"""
_UNFINISHED = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE rail = $1 AND direction = $2 AND done_at IS NULL ORDER BY created_at, file_id
"""
_LIST = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE ($1::text IS NULL OR rail = $1) AND ($2::text IS NULL OR direction = $2)
   AND ($3::text IS NULL OR state = $3)
 ORDER BY created_at DESC, name DESC, file_id DESC LIMIT $4
"""
_FINISH = """
UPDATE rail_file SET state = $2, report = $3, done_at = $4 WHERE file_id = $1 AND done_at IS NULL
"""


class RailFile(msgspec.Struct, frozen=True):
    """One file, without what it says. `report` is JSON text."""

    file_id: UUID
    rail: str
    direction: str
    name: str
    sha256: str
    state: str
    report: str | None
    size_bytes: int
    created_at: datetime
    done_at: datetime | None


class DuplicateFile(Exception):
    """The same content has been taken, or is being taken, under another name or the same."""

    def __init__(self, name: str, at: datetime) -> None:
        super().__init__(f"The same content arrived as {name} on {at:%Y-%m-%d}.")
        self.name = name
        self.at = at


async def save_outbound(
    conn: Connection | Pool, file_id: UUID, rail: str, name: str, content: bytes, *, now: datetime
) -> RailFile:
    """Keep a file of ours. One of this id that is there already stays as it is."""
    return await _save(conn, file_id, rail, OUT, name, content, now)


async def save_inbound(
    conn: Connection | Pool, file_id: UUID, rail: str, name: str, content: bytes, *, now: datetime
) -> RailFile:
    """Keep a file of theirs. Raises AlreadyArrived when its content has come before."""
    duplicate = await conn.fetchrow(_DUPLICATE, rail, sha256(content).digest(), file_id)
    if duplicate is not None:
        raise DuplicateFile(duplicate["name"], duplicate["created_at"])
    return await _save(conn, file_id, rail, IN, name, content, now)


async def complete_file(
    conn: Connection | Pool, file_id: UUID, state: str, *, now: datetime, report: dict[str, object] | None = None
) -> None:
    """Say what became of a file: HANDED, TAKEN or REFUSED. What is finished stays as it is."""
    report_text = None if report is None else msgspec.json.encode(report).decode()
    await conn.execute(_FINISH, file_id, state, report_text, now)


async def list_unfinished(conn: Connection | Pool, rail: str, direction: str) -> list[RailFile]:
    """Return files with which somebody has begun and not ended, oldest first."""
    return [rail_file_of(row) for row in await conn.fetch(_UNFINISHED, rail, direction)]


async def list_files(
    conn: Connection | Pool,
    *,
    rail: str | None = None,
    direction: str | None = None,
    state: str | None = None,
    limit: int = 100,
) -> list[RailFile]:
    """Return files, newest first; those of one instant by name backwards, as ours are numbered."""
    return [rail_file_of(row) for row in await conn.fetch(_LIST, rail, direction, state, limit)]


async def find_file(conn: Connection | Pool, file_id: UUID) -> RailFile:
    """Return one file. Raises NotFound."""
    row = await conn.fetchrow(_GET, file_id)
    if row is None:
        raise NotFound("There is no such file.")
    return rail_file_of(row)


async def read_content(conn: Connection | Pool, file_id: UUID) -> bytes:
    """Return what a file says. Raises NotFound."""
    content: bytes | None = await conn.fetchval("SELECT content FROM rail_file WHERE file_id = $1", file_id)
    if content is None:
        raise NotFound("There is no such file.")
    return content


async def _save(
    conn: Connection | Pool, file_id: UUID, rail: str, direction: str, name: str, content: bytes, now: datetime
) -> RailFile:
    state, content_hash = ("MADE" if direction == OUT else "ARRIVED"), sha256(content).digest()
    row = await conn.fetchrow(_INSERT, file_id, rail, direction, name, content, content_hash, state, now)
    return await find_file(conn, file_id) if row is None else rail_file_of(row)


def rail_file_of(row: Record) -> RailFile:
    """Return a file from a row of `COLUMNS`."""
    return RailFile(*row)
