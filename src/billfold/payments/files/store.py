"""Files of the rails: each is stored before it is processed, so that a crash loses none.

States: CREATED -> TRANSMITTED for outbound files, ARRIVED -> PROCESSED or REFUSED for inbound ones. The report
holds the result: lines and reasons of a refused file, the retry state (`exceptions`) of an
incomplete one. `now` is business time.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from billfold.data_keys.data_key import SEALED_BYTES
from billfold.payments.files.types import DuplicateFile, RailFile, SealedContent
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import NotFound

OUT, IN = "OUT", "IN"

COLUMNS = f"""file_id, rail, direction, name, coalesce(digest, sha256) AS digest, state, report,
       length(content) - CASE WHEN digest IS NULL THEN 0 ELSE {SEALED_BYTES} END AS size_bytes, created_at, done_at"""
_INSERT = f"""
INSERT INTO rail_file (file_id, rail, direction, name, content, digest, sha256, state, created_at)
VALUES ($1, $2, $3, $4, $5, $6, sha256($5), $7, $8) ON CONFLICT DO NOTHING RETURNING {COLUMNS}
"""
_GET = f"SELECT {COLUMNS} FROM rail_file WHERE file_id = $1"
_SAME_CONTENT = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE rail = $1 AND coalesce(digest, sha256) = ANY($2::bytea[]) AND direction = 'IN' AND state <> 'REFUSED'
   AND file_id <> $3
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


_CONTENT = "SELECT content, digest IS NOT NULL AS is_sealed FROM rail_file WHERE file_id = $1"


async def save_outbound(
    conn: Connection | Pool, file_id: UUID, rail: str, name: str, content: SealedContent, *, now: datetime
) -> RailFile:
    """Store an outbound file. A stored file with this id stays unchanged."""
    return await _save(conn, file_id, rail, direction=OUT, name=name, content=content, now=now)


async def save_inbound(
    conn: Connection | Pool,
    file_id: UUID,
    rail: str,
    name: str,
    content: SealedContent,
    *,
    plain_sha256: bytes,
    now: datetime,
) -> RailFile:
    """Store an inbound file. Raises DuplicateFile if the same content was received before.

    `plain_sha256` finds what an earlier release stored; its unfinished file of this name is continued.
    """
    same = await conn.fetchrow(_SAME_CONTENT, rail, [content.digest, plain_sha256], file_id)
    if same is None:
        return await _save(conn, file_id, rail, direction=IN, name=name, content=content, now=now)
    file = RailFile(*same)
    if file.name != name or file.done_at is not None:
        raise DuplicateFile(file.name, file.created_at)
    return file


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


async def get_content(conn: Connection | Pool, file_id: UUID) -> tuple[bytes, bool]:
    """Return the content of a file as it is stored, and whether it is sealed. Raises NotFound."""
    row = await conn.fetchrow(_CONTENT, file_id)
    if row is None:
        raise NotFound("There is no such file.")
    return row["content"], row["is_sealed"]


async def _save(
    conn: Connection | Pool, file_id: UUID, rail: str, direction: str, name: str, content: SealedContent, now: datetime
) -> RailFile:
    state = "CREATED" if direction == OUT else "ARRIVED"
    row = await conn.fetchrow(_INSERT, file_id, rail, direction, name, *content, state, now)
    return await find_file(conn, file_id) if row is None else RailFile(*row)
