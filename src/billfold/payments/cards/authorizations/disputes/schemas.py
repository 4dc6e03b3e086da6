"""Disputes as both APIs accept and return them."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.parameters import Query
from billfold.http.schemas import Amount, one_of, usd
from billfold.payments.cards.authorizations.disputes.commands import DisputeReason, DisputeRow, DisputeStatus

_AMOUNT_MAX = 999_999_999_99


class CreateDispute(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The cleared payment, by the id of its transaction, and what of it is disputed: all that is left if omitted."""

    pocket_id: UUID
    transaction_id: UUID
    reason: DisputeReason
    amount_usdc: Annotated[int, msgspec.Meta(ge=1, le=_AMOUNT_MAX)] | None = None
    document_ids: Annotated[list[UUID], msgspec.Meta(max_length=10)] = msgspec.field(default_factory=list)


class AddDocuments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Documents of the customer about the dispute, uploaded before."""

    document_ids: Annotated[list[UUID], msgspec.Meta(min_length=1, max_length=10)]


class DisputeFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of disputes; None does not filter."""

    customer_id: Annotated[UUID | None, Query()] = None
    card_id: Annotated[UUID | None, Query()] = None
    status: Annotated[list[DisputeStatus] | None, Query(name="status[]")] = None


class CardDispute(msgspec.Struct, kw_only=True):
    """A dispute. `provisional_credit` is what may still be taken back, `recovered` what came back from the merchant."""

    id: UUID
    card_id: UUID
    pocket_id: UUID
    status: Annotated[str, one_of(*DisputeStatus)]
    reason: Annotated[str, one_of(*DisputeReason)]
    merchant: str
    amount: Amount
    provisional_credit: Amount
    recovered: Amount
    document_ids: list[UUID]
    credit_due_at: datetime
    decide_by: datetime
    time_created: datetime
    updated_at: datetime
    object_type: Literal["CardDispute"] = "CardDispute"


def render_dispute(row: DisputeRow) -> CardDispute:
    """Return a dispute for display."""
    return CardDispute(
        id=row.dispute_id,
        card_id=row.card_id,
        pocket_id=row.pocket_id,
        status=row.status,
        reason=row.reason,
        merchant=row.merchant,
        amount=usd(row.amount),
        provisional_credit=usd(row.advanced),
        recovered=usd(row.recovered),
        document_ids=row.evidence_ids,
        credit_due_at=row.credit_due_at,
        decide_by=row.decide_by,
        time_created=row.created_at,
        updated_at=row.updated_at,
    )
