"""Files of the rails: each is stored before it is processed, so that a crash loses none.

States: CREATED -> TRANSMITTED for outbound files, ARRIVED -> PROCESSED or REFUSED for inbound ones. The report
holds the result: lines and reasons of a refused file, the retry state (`exceptions`) of an
incomplete one. `now` is business time.
"""

import asyncio
from datetime import datetime
from uuid import UUID

import msgspec

from billfold.data_keys.keys import SEALED_BYTES, DataKey, bank_key
from billfold.ledger.bank import Bank
from billfold.payments.files.types import DuplicateFile, RailFile, SealedContent
from billfold.platform.crypto import associated_data
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table
from billfold.platform.errors import NotFound

OUT, IN = "OUT", "IN"
RAIL_FILES = Table(RailFile, "rail_file", noun="file")
COLUMNS = RAIL_FILES.columns(size_bytes=f"length(content) - {SEALED_BYTES}")
_INSERT = f"""
INSERT INTO rail_file (file_id, rail, direction, name, content, digest, sha256, state, created_at)
VALUES ($1, $2, $3, $4, $5, $6, sha256($5), $7, $8) ON CONFLICT DO NOTHING RETURNING {COLUMNS}
"""
_GET = f"SELECT {COLUMNS} FROM rail_file WHERE file_id = $1"
_SAME_CONTENT = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE rail = $1 AND coalesce(digest, sha256) = $2 AND direction = 'IN' AND state <> 'REFUSED'
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


_CONTENT = "SELECT content FROM rail_file WHERE file_id = $1"


async def save_outbound(
    conn: Db, file_id: UUID, rail: str, name: str, content: SealedContent, *, now: datetime
) -> RailFile:
    """Store an outbound file. A stored file with this id is not changed."""
    return await _insert_file(conn, file_id, rail, direction=OUT, name=name, content=content, now=now)


async def save_inbound(
    conn: Db, file_id: UUID, rail: str, name: str, content: SealedContent, *, now: datetime
) -> RailFile:
    """Store an inbound file. Raises DuplicateFile if the same content was received before.

    An unfinished file of this name is continued.
    """
    same = (_SAME_CONTENT, rail, content.digest, file_id)
    file = await RAIL_FILES.first(conn, *same)
    if file is None:
        try:
            return await _insert_file(conn, file_id, rail, direction=IN, name=name, content=content, now=now)
        except NotFound:  # another process has stored this content, under its name, in the meantime
            file = await RAIL_FILES.one(conn, *same)
    if file.name != name or file.done_at is not None:
        raise DuplicateFile(file.name, file.created_at)
    return file


async def complete_file(
    conn: Db, file_id: UUID, state: str, *, now: datetime, report: dict[str, object] | None = None
) -> None:
    """Set the final state of a file: TRANSMITTED, PROCESSED or REFUSED. A completed file is not changed."""
    report_text = None if report is None else msgspec.json.encode(report).decode()
    await conn.execute(_FINISH, file_id, state, report_text, now)


async def list_unfinished(conn: Db, rail: str, direction: str) -> list[RailFile]:
    """Return incomplete files, oldest first."""
    return await RAIL_FILES.all(conn, _UNFINISHED, rail, direction)


async def list_files(
    conn: Db, *, rail: str | None = None, direction: str | None = None, state: str | None = None, limit: int = 100
) -> list[RailFile]:
    """Return files, newest first."""
    return await RAIL_FILES.all(conn, _LIST, rail, direction, state, limit)


async def find_file(conn: Db, file_id: UUID) -> RailFile:
    """Return one file. Raises NotFound."""
    return await RAIL_FILES.one(conn, _GET, file_id)


async def get_content(conn: Db, file_id: UUID) -> bytes:
    """Return the content of a file as it is stored: sealed. Raises NotFound."""
    content: bytes | None = await conn.fetchval(_CONTENT, file_id)
    if content is None:
        raise NotFound("There is no such file.")
    return content


async def _insert_file(
    conn: Db, file_id: UUID, rail: str, direction: str, name: str, content: SealedContent, now: datetime
) -> RailFile:
    state = "CREATED" if direction == OUT else "ARRIVED"
    saved = await RAIL_FILES.first(conn, _INSERT, file_id, rail, direction, name, *content, state, now)
    return saved or await find_file(conn, file_id)


def seal_content(data_key: DataKey, file_id: UUID, plain: bytes) -> SealedContent:
    """Return the content of a file as stored."""
    return SealedContent(data_key.seal(plain, _place(data_key, file_id)), data_key.digest(plain))


def open_content(data_key: DataKey, file_id: UUID, stored: bytes) -> bytes:
    """Return the content of a file. Raises InvariantError if it was altered or moved."""
    return data_key.open(stored, _place(data_key, file_id))


async def read_content(bank: Bank, file_id: UUID) -> bytes:
    """Return the content of a file. Raises NotFound, and InvariantError if it was altered or moved."""
    stored = await get_content(bank.pool, file_id)
    return await asyncio.to_thread(open_content, await bank_key(bank), file_id, stored)


def is_content_of(data_key: DataKey, file: RailFile, plain: bytes) -> bool:
    """Return whether a file has this content."""
    return file.digest == data_key.digest(plain)


def _place(data_key: DataKey, file_id: UUID) -> bytes:
    return associated_data("rail_file", "content", file_id, tenant_id=data_key.subject_id)
