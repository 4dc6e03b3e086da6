"""Rows of hits. Each write leaves the fingerprint of its row in the bank's audit log, so an edited row is found."""

from __future__ import annotations

from billfold.data_keys.keys import DataKeys
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.screening.types import HitContent, HitRow, HitStatus
from billfold.platform.crypto import associated_data
from billfold.platform.database.rows import proof_of
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from asyncpg import Record

    from billfold.audit.record import AuditedAction
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection, Pool)

_FIELDS = HitRow.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_INSERT = f"""
INSERT INTO sanctions_hit ({_COLUMNS}) VALUES ({", ".join(f"${n}" for n in range(1, len(_FIELDS) + 1))})
ON CONFLICT DO NOTHING RETURNING *
"""
_ONE = f"SELECT {_COLUMNS} FROM sanctions_hit WHERE hit_id = $1"
_KNOWN = "SELECT hit_id FROM sanctions_hit WHERE hit_id = ANY($1)"
_LIST = f"""
SELECT {_COLUMNS} FROM sanctions_hit WHERE $1::text IS NULL OR status = $1 ORDER BY found_at DESC, hit_id LIMIT $2
"""
_OPEN = f"""
SELECT {_COLUMNS} FROM sanctions_hit WHERE status = 'OPEN'
   AND NOT EXISTS (SELECT 1 FROM data_key WHERE subject_id = owner_id AND wrapped IS NULL)
 ORDER BY found_at, hit_id LIMIT $1
"""
_STANDING = """
SELECT owner_id, CASE WHEN bool_or(status = 'CONFIRMED') THEN 'CONFIRMED' ELSE 'OPEN' END AS status
  FROM sanctions_hit WHERE owner_id = ANY($1) AND subject_kind <> 'COUNTERPARTY' AND status <> 'CLEARED'
 GROUP BY owner_id
"""
_STANDING_OF_COUNTERPARTIES = """
SELECT subject_id, CASE WHEN bool_or(status = 'CONFIRMED') THEN 'CONFIRMED' ELSE 'OPEN' END
  FROM sanctions_hit
 WHERE owner_id = ANY($1) AND subject_id = ANY($2) AND subject_kind = 'COUNTERPARTY' AND status <> 'CLEARED'
 GROUP BY subject_id
"""


async def find_standing(conn: Connection | Pool, owner_id: UUID) -> HitStatus | None:
    """Return the worst status of the hits of an owner and its related parties; None: all are cleared."""
    row = await conn.fetchrow(_STANDING, [owner_id])
    return None if row is None else HitStatus(row["status"])


async def find_standing_of_customers(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the worst status of the hits of customers, under their own ids, for flows to see."""
    del ids
    return [(owner_id, owner_id, HitStatus(status)) for owner_id, status in await conn.fetch(_STANDING, customer_ids)]


async def list_standing(
    conn: Connection | Pool, owner_ids: Collection[UUID], counterparty_ids: Collection[UUID]
) -> dict[UUID, HitStatus]:
    """Return the worst status of the hits of counterparties, of those with one that is not cleared."""
    rows = await conn.fetch(_STANDING_OF_COUNTERPARTIES, owner_ids, counterparty_ids)
    return {subject_id: HitStatus(status) for subject_id, status in rows}


async def list_known(conn: Connection | Pool, hit_ids: Sequence[UUID]) -> set[UUID]:
    """Return which of these hits are there already."""
    return {each["hit_id"] for each in await conn.fetch(_KNOWN, hit_ids)}


async def list_hits(conn: Connection | Pool, status: str | None, limit: int) -> list[HitRow]:
    """Return hits of a status or of all, the newest first."""
    return [_row(each) for each in await conn.fetch(_LIST, status, limit)]


async def list_open(conn: Connection | Pool, limit: int) -> list[HitRow]:
    """Return hits that are not decided, the oldest first, and not those that were destroyed with their owner's key."""
    return [_row(each) for each in await conn.fetch(_OPEN, limit)]


async def get_hit(conn: Connection | Pool, hit_id: UUID) -> HitRow:
    """Return a hit. Raises NotFound."""
    found = await conn.fetchrow(_ONE, hit_id)
    if found is None:
        raise NotFound("There is no such hit.")
    return _row(found)


async def lock_hit(conn: Connection, hit_id: UUID) -> HitRow:
    """Return a hit, which nobody else decides until the transaction ends. Raises NotFound."""
    found = await conn.fetchrow(f"{_ONE} FOR UPDATE", hit_id)
    if found is None:
        raise NotFound("There is no such hit.")
    return _row(found)


async def add_hit(action: AuditedAction, row: HitRow) -> bool:
    """Add a hit; tell whether it is new."""
    written = await action.conn.fetchrow(_INSERT, *msgspec.structs.astuple(row))
    if written is not None:
        action.proves("sanctions_hit", row.hit_id, proof_of(written, written.keys()))
    return written is not None


async def update_hit(action: AuditedAction, hit_id: UUID, **changes: Any) -> HitRow:
    """Change columns of a hit that is locked; return it as it is then."""
    sets = ", ".join(f"{name} = ${number}" for number, name in enumerate(changes, 2))
    sql = f"UPDATE sanctions_hit SET {sets} WHERE hit_id = $1 RETURNING *"
    written = await action.conn.fetchrow(sql, hit_id, *changes.values())
    assert written is not None
    action.proves("sanctions_hit", hit_id, proof_of(written, written.keys()))
    return _row(written)


async def seal_content(
    conn: Connection | Pool, bank: Bank, owner_id: UUID, hit_id: UUID, *, content: HitContent
) -> bytes:
    """Return what a hit says, sealed with its owner's key."""
    return await bank.ports[DataKeys].seal(conn, owner_id, msgspec.json.encode(content), aad=_place(owner_id, hit_id))


async def open_content(conn: Connection | Pool, bank: Bank, row: HitRow) -> HitContent:
    """Return what a hit says."""
    plain = await bank.ports[DataKeys].open(conn, row.owner_id, row.content, aad=_place(row.owner_id, row.hit_id))
    return msgspec.json.decode(plain, type=HitContent)


def _place(owner_id: UUID, hit_id: UUID) -> bytes:
    return associated_data("sanctions_hit", "content", hit_id, tenant_id=owner_id)


def _row(record: Record) -> HitRow:
    return msgspec.convert({name: record[name] for name in _FIELDS}, HitRow)
