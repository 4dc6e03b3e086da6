"""Reads and writes of data keys."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.data_keys.kms import WrappedKey
from billfold.platform.database.connection import Db, Pool

# A row of this transaction may still be rolled back; it is never older than the transaction.
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
_NOT_WRAPPED_BY = """
SELECT subject_id, wrapped, master_key FROM data_key
 WHERE wrapped IS NOT NULL AND master_key <> $1 AND subject_id > $2 ORDER BY subject_id LIMIT $3
"""
_COUNT_NOT_WRAPPED_BY = "SELECT count(*) FROM data_key WHERE wrapped IS NOT NULL AND master_key <> $1"
_REPLACE_WRAPPED = """
UPDATE data_key SET wrapped = $4, master_key = $5 WHERE subject_id = $1 AND wrapped = $2 AND master_key = $3
RETURNING true
"""
_BY_MASTER_KEY = """
SELECT master_key, count(wrapped), count(*) - count(wrapped), min(created_at) FROM data_key
 GROUP BY master_key ORDER BY 2 DESC, 1
"""
_ONE_OF_EACH = """
SELECT DISTINCT ON (master_key) subject_id, wrapped, master_key FROM data_key
 WHERE wrapped IS NOT NULL ORDER BY master_key, subject_id
"""
_RETENTION_ENDED = """
SELECT e.subject_id, e.log_id FROM (
  SELECT customer_id AS subject_id, customer_id AS log_id, closed_at AS ended_at FROM customer
   WHERE account_status = 'CLOSED' AND role = 'customer'
  UNION ALL
  SELECT applicant_id, customer_id, updated_at FROM application WHERE status IN ('REJECTED', 'CLOSED')
) e LEFT JOIN data_key k USING (subject_id)
 WHERE e.ended_at <= $1::timestamptz - make_interval(years => $2) AND (k.subject_id IS NULL OR k.wrapped IS NOT NULL)
 ORDER BY e.ended_at, e.subject_id LIMIT $3
"""


class StoredKey(NamedTuple):
    """A data key's row; `wrapped` is None once it is shredded."""

    subject_id: UUID
    wrapped: bytes | None
    master_key: str
    is_committed: bool


class KeysOfMaster(NamedTuple):
    """The data keys of one master key: how many are in use, how many destroyed, since when."""

    master_key: str
    in_use: int
    shredded: int
    since: datetime


async def list_keys(conn: Db, subject_ids: Collection[UUID]) -> list[StoredKey]:
    """Return the existing rows of these subjects."""
    return [StoredKey(*row) for row in await conn.fetch(_LIST, list(subject_ids))]


async def add_key(conn: Db, subject_id: UUID, key: WrappedKey) -> None:
    """Write a key unless the subject has one; waits for another transaction that is writing one."""
    await conn.execute(_ADD, subject_id, key.wrapped, key.master_key)


async def shred_key(conn: Db, subject_id: UUID, at: datetime) -> bool:
    """Destroy a key, or record that there never will be one; tell whether anything changed."""
    if await conn.fetchval(_SHRED, subject_id, at) is not None:
        return True
    return await conn.fetchval(_ADD_SHREDDED, subject_id, at) is not None


async def count_not_wrapped_by(pool: Pool, master_key: str) -> int:
    """Return how many keys another master key wraps."""
    return int(await pool.fetchval(_COUNT_NOT_WRAPPED_BY, master_key))


async def list_not_wrapped_by(pool: Pool, master_key: str, after: UUID, limit: int) -> list[tuple[UUID, WrappedKey]]:
    """Return keys that another master key wraps, by subject from one on."""
    rows = await pool.fetch(_NOT_WRAPPED_BY, master_key, after, limit)
    return [(subject_id, WrappedKey(*wrapped)) for subject_id, *wrapped in rows]


async def replace_wrapped(pool: Pool, subject_id: UUID, old: WrappedKey, new: WrappedKey) -> bool:
    """Replace a wrapped key if it is unchanged; tell whether it was."""
    return await pool.fetchval(_REPLACE_WRAPPED, subject_id, *old, *new) is not None


async def list_by_master_key(conn: Db) -> list[KeysOfMaster]:
    """Return how many keys each master key wraps, the most first."""
    return [KeysOfMaster(*row) for row in await conn.fetch(_BY_MASTER_KEY)]


async def list_one_of_each(conn: Db) -> list[tuple[UUID, WrappedKey]]:
    """Return one key of each master key that wraps any."""
    return [(subject_id, WrappedKey(*wrapped)) for subject_id, *wrapped in await conn.fetch(_ONE_OF_EACH)]


async def list_retention_ended(pool: Pool, now: datetime, years: int, limit: int) -> list[tuple[UUID, UUID]]:
    """Return customers who were closed, and applicants who were rejected or withdrew, so many years ago.

    Only those whose key is not destroyed yet, each with the customer whose audit log covers them: for an applicant, the
    customer who made the application.
    """
    return [(subject_id, log_id) for subject_id, log_id in await pool.fetch(_RETENTION_ENDED, now, years, limit)]
