"""Files of the rails: each is stored before it is processed, so that a crash loses none.

States: CREATED -> TRANSMITTED for outbound files, ARRIVED -> PROCESSED or REFUSED for inbound ones. The report
holds the result: lines and reasons of a refused file, the retry state (`exceptions`) of an
incomplete one. `now` is business time.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.payments.files.types import DuplicateFile, RailFile
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
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
 WHERE rail = $1 AND direction = $2 AND done_at IS NULL ORDER BY created_at, written_no
"""
_LIST = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE ($1::text IS NULL OR rail = $1) AND ($2::text IS NULL OR direction = $2)
   AND ($3::text IS NULL OR state = $3)
 ORDER BY created_at DESC, written_no DESC LIMIT $4
"""
_FINISH = """
UPDATE rail_file SET state = $2, report = $3, done_at = $4 WHERE file_id = $1 AND done_at IS NULL
"""


async def save_outbound(
    conn: Connection | Pool, file_id: UUID, rail: str, name: str, content: bytes, *, now: datetime
) -> RailFile:
    """Store an outbound file. A stored file with this id stays unchanged."""
    return await _save(conn, file_id, rail, direction=OUT, name=name, content=content, now=now)


async def save_inbound(
    conn: Connection | Pool, file_id: UUID, rail: str, name: str, content: bytes, *, now: datetime
) -> RailFile:
    """Store an inbound file. Raises DuplicateFile if the same content was received before."""
    duplicate = await conn.fetchrow(_DUPLICATE, rail, sha256(content).digest(), file_id)
    if duplicate is not None:
        raise DuplicateFile(duplicate["name"], duplicate["created_at"])
    return await _save(conn, file_id, rail, direction=IN, name=name, content=content, now=now)


async def complete_file(
    conn: Connection | Pool, file_id: UUID, state: str, *, now: datetime, report: dict[str, object] | None = None
) -> None:
    """Set the final state of a file: TRANSMITTED, PROCESSED or REFUSED. A completed file stays unchanged."""
    report_text = None if report is None else msgspec.json.encode(report).decode()
    await conn.execute(_FINISH, file_id, state, report_text, now)


async def list_unfinished(conn: Connection | Pool, rail: str, direction: str) -> list[RailFile]:
    """Return incomplete files, oldest first."""
    return [RailFile(*row) for row in await conn.fetch(_UNFINISHED, rail, direction)]


async def list_files(
    conn: Connection | Pool,
    *,
    rail: str | None = None,
    direction: str | None = None,
    state: str | None = None,
    limit: int = 100,
) -> list[RailFile]:
    """Return files, newest first."""
    return [RailFile(*row) for row in await conn.fetch(_LIST, rail, direction, state, limit)]


async def find_file(conn: Connection | Pool, file_id: UUID) -> RailFile:
    """Return one file. Raises NotFound."""
    row = await conn.fetchrow(_GET, file_id)
    if row is None:
        raise NotFound("There is no such file.")
    return RailFile(*row)


async def read_content(conn: Connection | Pool, file_id: UUID) -> bytes:
    """Return the content of a file. Raises NotFound."""
    content: bytes | None = await conn.fetchval("SELECT content FROM rail_file WHERE file_id = $1", file_id)
    if content is None:
        raise NotFound("There is no such file.")
    return content


async def _save(
    conn: Connection | Pool, file_id: UUID, rail: str, direction: str, name: str, content: bytes, now: datetime
) -> RailFile:
    state, content_hash = ("CREATED" if direction == OUT else "ARRIVED"), sha256(content).digest()
    row = await conn.fetchrow(_INSERT, file_id, rail, direction, name, content, content_hash, state, now)
    return await find_file(conn, file_id) if row is None else RailFile(*row)
