"""Queries of disputes, and of the refunds that count against them."""

from collections.abc import Sequence
from uuid import UUID

from billfold.payments.cards.authorizations.commands import CardPaymentRow, authorization_id_of
from billfold.payments.cards.authorizations.disputes.commands import (
    DisputeRow,
    DisputeStatus,
    RefundSeen,
    refund_id_of,
)
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.rows import References, Table

_disputes, _payments = Table(DisputeRow), Table(CardPaymentRow)
# Cards and merchants of these purchases, and of the disputes of these cards.
_CONCERNED = """
SELECT customer_id, card_id, merchant FROM card_dispute
 WHERE customer_id = ANY($1::uuid[]) AND (dispute_id = ANY($2::uuid[]) OR card_id = ANY($2::uuid[]))
 UNION
SELECT customer_id, card_id, merchant->>'name' FROM card_payment
 WHERE customer_id = ANY($1::uuid[]) AND record_id = ANY($2::uuid[])
"""
_OF_CARDS = f"(customer_id, card_id) IN (SELECT customer_id, card_id FROM ({_CONCERNED}) c)"
_REFERENCED = f"{_disputes.select} WHERE {_OF_CARDS}"
_PAID = f"""{_payments.select} WHERE kind IN ('PURCHASE', 'REPRESENTMENT')
   AND (customer_id, card_id, merchant->>'name') IN ({_CONCERNED})"""
_OPEN = f"{_disputes.select} WHERE customer_id = ANY($1::uuid[]) AND advanced > 0"
_REFUNDS = f"""
SELECT r.customer_id, r.record_id, r.card_id, r.amount, r.merchant->>'name', a.details->>'issue_id', r.created_at
  FROM (SELECT customer_id, record_id, card_id, amount, merchant, created_at, pocket_id, entry_no FROM card_payment
         WHERE kind = 'REFUND' AND {_OF_CARDS}) r
  JOIN transaction a ON a.customer_id = r.customer_id AND a.pocket_id = r.pocket_id AND a.entry_no = r.entry_no
   AND a.type = 'CARD'
"""
_OF_ENTRY = f"{_payments.select} WHERE customer_id = $1 AND entry_no = $2 AND kind = 'PURCHASE'"
_UNDECIDED = f"""{_disputes.select} WHERE status IN ('OPENED', 'PROVISIONALLY_CREDITED')
   AND ($2::text IS NULL OR status = $2) ORDER BY decide_by, written_no LIMIT $1"""
_ENDED = f"""{_disputes.select} WHERE status NOT IN ('OPENED', 'PROVISIONALLY_CREDITED')
   AND ($2::text IS NULL OR status = $2) ORDER BY updated_at DESC, written_no DESC LIMIT $1"""
_OF_PURCHASE = f"""{_disputes.select} WHERE customer_id = $1 AND card_id = $2 AND record_id = $3
 ORDER BY created_at DESC, written_no DESC LIMIT $4"""
get_dispute = _disputes.get
DISPUTES, DISPUTES_THEN = (
    KeysetList(
        f"""SELECT * FROM ({selected} card_dispute.customer_id = $1) d
 WHERE ($2::uuid IS NULL OR card_id = $2) AND ($3::text[] IS NULL OR status = ANY($3)) AND {{page}}""",
        _disputes.read,
        **BY_CREATION,
    )
    for selected in (
        f"SELECT {_disputes.columns()}, written_no FROM card_dispute WHERE",
        f"{_disputes.select_as_of('$4', 'written_no')} AND",
    )
)
"""The disputes of a customer, by card and statuses; None does not filter."""


async def get_purchase(conn: Db, customer_id: UUID, entry_no: int) -> CardPaymentRow:
    """Return the cleared purchase of a journal entry. Raises NotFound."""
    return await _payments.one(conn, _OF_ENTRY, customer_id, entry_no)


async def list_undecided(conn: Db, *, limit: int, status: DisputeStatus | None = None) -> list[DisputeRow]:
    """Return the disputes that wait for a decision, the most urgent first."""
    return await _disputes.all(conn, _UNDECIDED, limit, status)


async def list_ended(conn: Db, *, limit: int, status: DisputeStatus | None = None) -> list[DisputeRow]:
    """Return the disputes that have ended, the last first. They are few: no index is kept for them."""
    return await _disputes.all(conn, _ENDED, limit, status)


async def list_of_purchase(conn: Db, purchase: CardPaymentRow, *, limit: int) -> list[DisputeRow]:
    """Return the disputes of a purchase, the newest first."""
    return await _disputes.all(conn, _OF_PURCHASE, purchase.customer_id, purchase.card_id, purchase.record_id, limit)


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the disputes of the cards concerned, their refunds, and the purchases of the merchants concerned."""
    found = await _disputes.all(conn, _REFERENCED, customer_ids, ids)
    paid = await _payments.all(conn, _PAID, customer_ids, ids)
    refunds = await conn.fetch(_REFUNDS, customer_ids, ids)
    return [
        *((each.customer_id, each.dispute_id, each) for each in found),
        *((each.customer_id, each.record_id, each) for each in paid),
        *(
            (owner, refund_id_of(key), RefundSeen(card_id, cents, name, _named(card_id, reference), at))
            for owner, key, card_id, cents, name, reference, at in refunds
        ),
    ]


def _named(card_id: UUID, reference: str | None) -> UUID | None:
    return None if reference is None else authorization_id_of(card_id, reference)


async def load_open(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the disputes whose credit may still be taken back from their Pocket."""
    del ids
    return [(each.customer_id, each.dispute_id, each) for each in await _disputes.all(conn, _OPEN, customer_ids)]
