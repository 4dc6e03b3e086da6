"""Wires as both APIs accept and return them."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.holds.schemas import Named
from billfold.accounts.notes.schemas import NewNote, PaymentFilters
from billfold.accounts.notes.types import ShownNote
from billfold.accounts.transactions.settlement import SettledDocument, remittance_shown
from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.http.parameters import Query
from billfold.http.schemas import Amount, usd
from billfold.payments.on_us.schemas import Cents, FullWithdrawal, RequestedAmount
from billfold.payments.wires.commands import WireDirection, WireRow, WireStatus
from billfold.payments.wires.messages import open_message

Note = Annotated[str, msgspec.Meta(max_length=140)]


class CreateWire(NewNote, forbid_unknown_fields=True, kw_only=True):
    """A wire to send. Give exactly one of `amount` and `amount_usdc`."""

    counterparty_id: UUID
    amount_usdc: Cents | None = None
    amount: RequestedAmount | FullWithdrawal | None = None
    description: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    wire_instructions: Note | None = None
    end_to_end_identification: Annotated[str, msgspec.Meta(max_length=35)] | None = None
    created_by: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    wire_id: UUID | None = None
    hold_id: Named = UNSET


class WireFilters(PaymentFilters, frozen=True, kw_only=True):
    """Filter of wires; None does not filter."""

    pocket_id: Annotated[UUID | None, Query()] = None
    customer_id: Annotated[UUID | None, Query()] = None
    direction: Annotated[Literal["INCOMING", "OUTGOING"] | None, Query()] = None
    status: Annotated[list[WireStatus] | None, Query(name="status[]")] = None


class WireFee(msgspec.Struct, kw_only=True):
    """The fee for sending the wire."""

    type: Literal["WIRE_FEE"] = "WIRE_FEE"
    amount: Amount


class Wire(ShownNote, kw_only=True):
    """A wire. `original_wire_id` is set only for a RETURN, `reason` for a REJECTED wire or one WAITING_FOR_FUNDS."""

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
    remittance_information: dict[str, Any] | None
    created_by: str | None
    transaction_id: UUID | None
    time_created: datetime
    time_settled: datetime | None
    updated_at: datetime
    object_type: Literal["Wire"] = "Wire"


def render_wire(row: WireRow, keys: PaymentKeys) -> Wire:
    """Return a wire for display, with the keys that decrypt it."""

    def plain(stored: str | None) -> str | None:
        return stored and keys.open(PartyField.TEXT, row.customer_id, stored)

    return msgspec.convert(
        {
            "id": row.wire_id,
            "amount": usd(row.amount),
            "fees": [WireFee(amount=usd(row.fee))] if row.fee else [],
            "time_created": row.created_at,
            "time_settled": row.settled_at,
            **{name: getattr(row, name) for name in _SHARED_FIELDS},
            "description": plain(row.description),
            "wire_instructions": plain(row.wire_instructions),
            "remittance_information": _remittance(row, keys),
        },
        Wire,
    )


def _remittance(row: WireRow, keys: PaymentKeys) -> dict[str, Any] | None:
    """Return the remittance information in an incoming payment's message, or an outgoing payment's description."""
    if row.message is None:
        own = row.description if row.direction == WireDirection.OUTGOING else None
        text = keys.open(PartyField.TEXT, row.customer_id, own) if own else None
        return remittance_shown([text] if text else [], row.end_to_end_identification)
    said = open_message(keys, row.customer_id, msgspec.json.decode(row.message))
    documents = msgspec.convert(said.get("documents"), tuple[SettledDocument, ...] | None)
    return remittance_shown((said.get("remittance") or "").splitlines(), row.end_to_end_identification, documents)


_SHARED_FIELDS = frozenset(Wire.__struct_fields__) & frozenset(WireRow.__struct_fields__) - {"amount"}
