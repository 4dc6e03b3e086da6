"""Reads of counterparties."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.domain.counterparties.types import Payee
from billfold.kit.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from billfold.kit.db import Connection, Pool

_COLUMNS = """
SELECT customer_id, counterparty_id, type, status, counterparty_name, display_name,
       account_number, target_customer_id, target_pocket_id, verification, created_at, updated_at
  FROM counterparty
"""
_GET = f"{_COLUMNS} WHERE customer_id = $1 AND counterparty_id = $2"
_LOOK_UP = """
SELECT customer_id, counterparty_id, type, status, counterparty_name, verification, details,
       target_customer_id, target_pocket_id
  FROM counterparty WHERE customer_id = ANY($1::uuid[]) AND counterparty_id = ANY($2::uuid[])
"""
_LIST = """{columns}
 WHERE customer_id = $1
   AND ($2::text[] IS NULL OR type = ANY($2)) AND ($3::text[] IS NULL OR status = ANY($3))
   AND ($4::timestamptz IS NULL OR (created_at, counterparty_id) {than} ($4, $5::uuid))
 ORDER BY created_at {way}, counterparty_id {way} LIMIT $6"""
_DOWN = _LIST.format(columns=_COLUMNS, than="<", way="DESC")
_UP = _LIST.format(columns=_COLUMNS, than=">", way="ASC")


class CounterpartyRow(msgspec.Struct, frozen=True):
    """A counterparty as stored; name and verification are JSON text."""

    customer_id: UUID
    counterparty_id: UUID
    type: str
    status: str
    counterparty_name: str
    display_name: str | None
    account_number: str | None
    target_customer_id: UUID | None
    target_pocket_id: UUID | None
    verification: str
    created_at: datetime
    updated_at: datetime


async def get_counterparty(
    conn: Connection | Pool, customer_id: UUID, counterparty_id: UUID
) -> CounterpartyRow:
    """The customer's counterparty. Raises NotFound."""
    row = await conn.fetchrow(_GET, customer_id, counterparty_id)
    if row is None:
        raise NotFound("There is no such counterparty.")
    return CounterpartyRow(*row)


async def list_counterparties(
    conn: Connection | Pool,
    customer_id: UUID,
    *,
    types: list[str] | None,
    statuses: list[str] | None,
    after: tuple[datetime, UUID] | None,
    backwards: bool,
    limit: int,
) -> list[CounterpartyRow]:
    """Newest first, on from `after`; backwards oldest first."""
    created_at, counterparty_id = after or (None, None)
    sql = _UP if backwards else _DOWN
    rows = await conn.fetch(sql, customer_id, types, statuses, created_at, counterparty_id, limit)
    return [CounterpartyRow(*row) for row in rows]


async def look_up(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return those of these ids that are counterparties of these customers, as flows see them."""
    rows = await conn.fetch(_LOOK_UP, customer_ids, ids)
    decode = msgspec.json.decode
    return [
        (
            row["customer_id"],
            row["counterparty_id"],
            Payee(
                counterparty_id=row["counterparty_id"],
                type=row["type"],
                status=row["status"],
                counterparty_name=decode(row["counterparty_name"]),
                verification=decode(row["verification"]),
                details=decode(row["details"]),
                target_customer_id=row["target_customer_id"],
                target_pocket_id=row["target_pocket_id"],
            ),
        )
        for row in rows
    ]
