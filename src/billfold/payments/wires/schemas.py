"""A wire as both APIs show it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from billfold.http.schemas.amounts import Amount, usd
from billfold.payments.wires.types import WireRow


class WireFee(msgspec.Struct, kw_only=True):
    """What sending the wire costs."""

    type: Literal["WIRE_FEE"] = "WIRE_FEE"
    amount: Amount


class Wire(msgspec.Struct, kw_only=True):
    """A wire. `original_wire_id` is there for a RETURN only, `reason` for what was REJECTED."""

    id: UUID
    pocket_id: UUID
    customer_id: UUID
    portal_id: UUID | None
    direction: Literal["INCOMING", "OUTGOING"]
    wire_type: Literal["PAYMENT", "REVERSAL", "RETURN"]
    original_wire_id: UUID | None
    status: Literal["PENDING", "PROCESSING", "COMPLETED", "REJECTED"]
    reason: str | None
    amount: Amount
    fees: list[WireFee]
    counterparty_id: UUID | None
    counterparty_name: str
    reference_number: str
    imad: str | None
    omad: str | None
    uetr: str
    description: str | None
    wire_instructions: str | None
    end_to_end_identification: str | None
    created_by: str | None
    transaction_id: UUID | None
    time_created: datetime
    time_settled: datetime | None
    updated_at: datetime
    object_type: Literal["Wire"] = "Wire"


def render_wire(row: WireRow) -> Wire:
    """A wire from its row."""
    return msgspec.convert(
        {
            "id": row.wire_id,
            "amount": usd(row.amount),
            "fees": [WireFee(amount=usd(row.fee))] if row.fee else [],
            "time_created": row.created_at,
            "time_settled": row.settled_at,
            **{name: getattr(row, name) for name in _SHARED_FIELDS},
        },
        Wire,
    )


_SHARED_FIELDS = frozenset(Wire.__struct_fields__) & frozenset(WireRow.__struct_fields__) - {"amount"}
