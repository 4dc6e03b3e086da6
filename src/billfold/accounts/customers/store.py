"""Reads of customers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.ledger.directory.types import CustomerRow

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_LIST = """
SELECT customer_id, partner_id, role, type, name, account_status, profile, opened_at, closed_at,
       closure_reason
  FROM customer
 WHERE partner_id = $1 AND role = 'customer'
   AND ($2::text IS NULL OR account_status = $2) AND ($3::text IS NULL OR type = $3)
   AND ($4::timestamptz IS NULL OR (opened_at, customer_id) {than} ($4, $5::uuid))
 ORDER BY opened_at {way}, customer_id {way} LIMIT $6
"""
_DOWN = _LIST.format(than="<", way="DESC")
_UP = _LIST.format(than=">", way="ASC")


async def list_customers(
    conn: Connection | Pool,
    partner_id: UUID,
    *,
    account_status: str | None,
    type_: str | None,
    after: tuple[datetime, UUID] | None,
    backwards: bool,
    limit: int,
) -> list[CustomerRow]:
    """A partner's customers, newest first, on from `after`; backwards oldest first."""
    opened_at, customer_id = after or (None, None)
    sql = _UP if backwards else _DOWN
    rows = await conn.fetch(sql, partner_id, account_status, type_, opened_at, customer_id, limit)
    return [CustomerRow(*row) for row in rows]
