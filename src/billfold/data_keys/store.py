"""Reads and writes of data keys."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.data_keys.ports import WrappedKey

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

# A row of this very transaction may still be rolled back; it is never older than the transaction.
_LIST = """
SELECT subject_id, wrapped, master_key, created_at < transaction_timestamp() AS is_committed
  FROM data_key WHERE subject_id = ANY($1::uuid[])
"""
_ADD = """
INSERT INTO data_key (subject_id, wrapped, master_key) VALUES ($1, $2, $3)
ON CONFLICT (subject_id) DO NOTHING
"""
_SHRED = """
UPDATE data_key SET wrapped = NULL, shredded_at = $2
 WHERE subject_id = $1 AND wrapped IS NOT NULL RETURNING subject_id
"""
_ADD_SHREDDED = """
INSERT INTO data_key (subject_id, master_key, shredded_at) VALUES ($1, 'none', $2) ON CONFLICT (subject_id) DO NOTHING
RETURNING subject_id
"""


class StoredKey(NamedTuple):
    """A data key's row; `wrapped` is None once it is shredded."""

    subject_id: UUID
    wrapped: bytes | None
    master_key: str
    is_committed: bool


async def list_keys(conn: Connection | Pool, subject_ids: Collection[UUID]) -> list[StoredKey]:
    """Return the rows of these subjects that have one."""
    return [StoredKey(*row) for row in await conn.fetch(_LIST, list(subject_ids))]


async def add_key(conn: Connection | Pool, subject_id: UUID, key: WrappedKey) -> None:
    """Write a key unless the subject has one; waits for whoever is writing one at this moment."""
    await conn.execute(_ADD, subject_id, key.wrapped, key.master_key)


async def shred_key(conn: Connection | Pool, subject_id: UUID, at: datetime) -> bool:
    """Destroy a key, or note that there never will be one; tell whether there was something to do."""
    if await conn.fetchval(_SHRED, subject_id, at) is not None:
        return True
    return await conn.fetchval(_ADD_SHREDDED, subject_id, at) is not None
