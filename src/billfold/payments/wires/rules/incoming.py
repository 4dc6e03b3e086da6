"""The fields of incoming wires and returns, from their messages."""

from typing import Any
from uuid import UUID

import msgspec

from billfold.payments.wires.iso20022.types import CreditTransfer, PaymentReturn
from billfold.payments.wires.types import IncomingWireFields, WireType


def incoming_wire_of(message: CreditTransfer, omad: str | None) -> IncomingWireFields:
    """Return the wire fields of a payment message."""
    return IncomingWireFields(
        uetr=message.uetr,
        imad=message.message_id,
        omad=omad,
        sender_name=message.debtor.name,
        reference_number=message.instruction_id or message.message_id,
        instructions=message.instructions,
        end_to_end=message.end_to_end_id,
        message=msgspec.json.encode(message).decode(),
    )


def returned_wire_of(message: PaymentReturn, omad: str | None, original_wire_id: UUID | None) -> IncomingWireFields:
    """Return the wire fields of a return message; without an original it is booked as a payment."""
    return IncomingWireFields(
        uetr=message.original.uetr,
        imad=message.message_id,
        omad=omad,
        sender_name=message.debtor.name,
        reference_number=message.return_id or message.message_id,
        instructions=None,
        end_to_end=message.original.end_to_end_id,
        message=msgspec.json.encode(message).decode() if original_wire_id else None,
        original_wire_id=original_wire_id,
    )


def details_of(arrived: IncomingWireFields, wire_id: UUID) -> dict[str, Any]:
    """Return the transaction details of an incoming wire."""
    original = arrived.original_wire_id
    return {
        "wire_type": WireType.PAYMENT if original is None else WireType.RETURN,
        "wire_id": str(wire_id),
        "original_wire_id": None if original is None else str(original),
        "reference_number": arrived.reference_number,
        "counterparty_name": arrived.sender_name,
        "counterparty_id": None,
    }


def remittance_of(message: CreditTransfer, text: str | None, documents: str | None) -> dict[str, Any]:
    """Return the remittance information of the sender; lines and documents are sealed, each as one text."""
    references = {"end_to_end_identification": message.end_to_end_id}
    return {
        "unstructured": [text] if text else [],
        "structured": references | {"documents": documents} if documents else references,
    }
