"""Reversal requests as both APIs accept and return them."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.parameters import Query
from billfold.http.schemas import Amount, one_of, usd
from billfold.payments.on_us.reversals.commands import ReversalRequestRow, ReversalStatus
from billfold.payments.on_us.schemas import Cents

Side = Literal["REQUESTER", "PAYEE"]


class ReverseTransfer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The cents to pay back: all that has not been paid back yet if omitted."""

    amount_usdc: Cents | None = None


class CreateReversalRequest(ReverseTransfer, forbid_unknown_fields=True, kw_only=True):
    """A request to the payee, who reads the reason."""

    reason: Annotated[str, msgspec.Meta(max_length=100)] | None = None


class ReversalFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of reversal requests; None does not filter."""

    customer_id: Annotated[UUID | None, Query()] = None
    side: Annotated[Side | None, Query(description="Whether the customer asks, or was paid and is asked.")] = None
    status: Annotated[list[ReversalStatus] | None, Query(name="status[]")] = None


class ReversalRequest(msgspec.Struct, kw_only=True):
    """A request to pay `transfer_id` back. `side` is that of the reader; `reversed_by` is the transfer that paid it."""

    id: UUID
    transfer_id: UUID
    side: Annotated[str, one_of("REQUESTER", "PAYEE")]
    status: Annotated[str, one_of(*ReversalStatus)]
    amount: Amount
    reason: str | None
    reversed_by: UUID | None
    expires_at: datetime
    time_created: datetime
    object_type: Literal["ReversalRequest"] = "ReversalRequest"


def render_reversal(row: ReversalRequestRow, reader: UUID) -> ReversalRequest:
    """Return a request as one of its customers reads it."""
    return ReversalRequest(
        id=row.reversal_id,
        transfer_id=row.transfer_id,
        side="REQUESTER" if reader == row.requester_id else "PAYEE",
        status=row.status,
        amount=usd(row.amount),
        reason=row.reason,
        reversed_by=row.reversed_by,
        expires_at=row.expires_at,
        time_created=row.created_at,
    )
