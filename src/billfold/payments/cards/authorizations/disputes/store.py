"""Queries of disputes, and of the refunds that count against them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from billfold.payments.cards.authorizations.commands import CardPaymentRow
from billfold.payments.cards.authorizations.disputes.commands import DisputeRow, RefundsSeen, refunds_id_of
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.rows import Table

_disputes, _payments = Table(DisputeRow), Table(CardPaymentRow)
_REFERENCED = f"""{_disputes.select} WHERE customer_id = ANY($1::uuid[])
   AND (dispute_id = ANY($2::uuid[]) OR card_id = ANY($2::uuid[]))"""
_OPEN = f"{_disputes.select} WHERE customer_id = ANY($1::uuid[]) AND advanced > 0"
# A refund without a reference is of any purchase of its merchant.
_REFUNDS = """
SELECT p.customer_id, p.record_id,
       coalesce(sum(r.amount) FILTER (WHERE a.details->>'issue_id' = h.network_reference), 0)::bigint,
       coalesce(array_agg(r.amount) FILTER (WHERE a.details->>'issue_id' IS NULL
                                              AND r.merchant->>'name' = p.merchant->>'name'), '{}')
  FROM card_payment p
  LEFT JOIN card_authorization h ON h.customer_id = p.customer_id AND h.authorization_id = p.authorization_id
  JOIN card_payment r ON r.customer_id = p.customer_id AND r.card_id = p.card_id AND r.kind = 'REFUND'
   AND r.created_at >= p.created_at
  JOIN transaction a ON a.customer_id = r.customer_id AND a.pocket_id = r.pocket_id AND a.entry_no = r.entry_no
   AND a.type = 'CARD'
 WHERE p.customer_id = ANY($1::uuid[]) AND p.record_id = ANY($2::uuid[])
 GROUP BY p.customer_id, p.record_id
"""
_OF_ENTRY = f"{_payments.select} WHERE customer_id = $1 AND entry_no = $2 AND kind = 'PURCHASE'"
_UNDECIDED = f"""{_disputes.select} WHERE status IN ('OPENED', 'PROVISIONALLY_CREDITED')
 ORDER BY decide_by, written_no LIMIT $1"""
get_dispute = _disputes.get
DISPUTES = KeysetList(
    f"""SELECT {_disputes.columns()}, written_no FROM card_dispute WHERE customer_id = $1
   AND ($2::uuid IS NULL OR card_id = $2) AND ($3::text[] IS NULL OR status = ANY($3)) AND {{page}}""",
    _disputes.read,
    **BY_CREATION,
)
"""The disputes of a customer, by card and statuses; None does not filter."""


async def get_purchase(conn: Db, customer_id: UUID, entry_no: int) -> CardPaymentRow:
    """Return the cleared purchase of a journal entry. Raises NotFound."""
    return await _payments.one(conn, _OF_ENTRY, customer_id, entry_no)


async def list_undecided(conn: Db, *, limit: int) -> list[DisputeRow]:
    """Return the disputes that wait for a decision, the most urgent first."""
    return await _disputes.all(conn, _UNDECIDED, limit)


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the disputes among these ids and of these cards, and the refunds of these purchases."""
    found = await _disputes.all(conn, _REFERENCED, customer_ids, ids)
    refunds = await conn.fetch(_REFUNDS, customer_ids, ids)
    return [
        *((each.customer_id, each.dispute_id, each) for each in found),
        *((owner, refunds_id_of(key), RefundsSeen(key, sure, tuple(others))) for owner, key, sure, others in refunds),
    ]


async def load_open(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the disputes whose credit may still be taken back from their Pocket."""
    del ids
    return [(each.customer_id, each.dispute_id, each) for each in await _disputes.all(conn, _OPEN, customer_ids)]
