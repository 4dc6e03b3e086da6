"""Bookings that the bank made by itself in a pocket, as corrections see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.accounts.transactions.types import BankBooking

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_FIND = """
SELECT a.customer_id, a.activity_id, a.pocket_id, a.entry_no, j.kind AS journal_kind, a.type,
       a.direction, a.amount, a.details->>'cause' AS cause,
       EXISTS (SELECT 1 FROM journal_entry r
                WHERE r.customer_id = a.customer_id AND r.reverses = a.entry_no)
       OR EXISTS (SELECT 1 FROM transaction c
                WHERE c.customer_id = a.customer_id AND c.pocket_id = a.pocket_id
                  AND c.type = 'GENERIC' AND c.entry_no > a.entry_no
                  AND c.details->>'corrects' = a.activity_id::text) AS is_corrected
  FROM transaction a JOIN journal_entry j USING (customer_id, entry_no)
 WHERE a.customer_id = ANY($1::uuid[]) AND a.activity_id = ANY($2::uuid[])
   AND a.type IN ('FEE', 'CREDIT', 'GENERIC')
"""


async def find_bank_bookings(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return those of these ids that are such bookings of these customers."""
    rows = await conn.fetch(_FIND, customer_ids, ids)
    return [(customer_id, rest[0], BankBooking(*rest)) for customer_id, *rest in rows]
