"""Incoming wires: the fields of the message; each is recorded, and one that is not accepted queues its return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.payments.wires.iso20022.types import CreditTransfer, PaymentReturn
from billfold.payments.wires.rules import messages
from billfold.payments.wires.rules.recording import add_wire, queue_message, send_time
from billfold.payments.wires.types import IncomingWireFields, WireDirection, WireRow, WireStatus, WireType

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import PocketBook
    from billfold.ledger.context import (Context)
    from billfold.payments.deposits.commands import ReceiveMoney

_decode = msgspec.json.Decoder(CreditTransfer).decode


def record_incoming_wire(
    book: Book,
    ctx: Context,
    cmd: ReceiveMoney,
    pocket: PocketBook,
    *,
    group: UUID | None = None,
    counterparty_id: UUID | None = None,
) -> None:
    """Record a wire that came in a message; `group` is its transaction, None if it is rejected."""
    arrived, wire_id, taken = cmd.wire, cmd.key, group is not None
    if arrived is None:
        return
    add_wire(
        book,
        WireRow(
            customer_id=book.customer_id,
            wire_id=wire_id,
            partner_id=pocket.partner_id,
            pocket_id=pocket.pocket_id,
            portal_id=cmd.portal_id,
            direction=WireDirection.INCOMING,
            wire_type=WireType.RETURN if arrived.original_wire_id else WireType.PAYMENT,
            original_wire_id=arrived.original_wire_id,
            status=WireStatus.COMPLETED if taken else WireStatus.REJECTED,
            reason=None if taken else "ACCOUNT_UNAVAILABLE",
            amount=cmd.amount,
            counterparty_id=counterparty_id,
            counterparty_name=arrived.sender_name,
            reference_number=arrived.reference_number,
            uetr=arrived.uetr,
            imad=arrived.imad,
            omad=arrived.omad,
            description=cmd.description or None,
            wire_instructions=arrived.instructions,
            end_to_end_identification=arrived.end_to_end,
            message=arrived.message,
            transaction_id=group,
            entry_no=book.entry_no if taken else None,
            created_at=ctx.now,
            settled_at=book.booked_at if taken else None,
            updated_at=ctx.now,
        ),
    )
    if not taken and arrived.message is not None:
        terms = messages.payment_return(
            _decode(arrived.message),
            bank=ctx.terms.routing_number,
            reason="ACCOUNT_UNAVAILABLE",
            information="The account takes no payments",
        )
        queue_message(book, ctx, "pacs.004", wire_id=wire_id, terms=terms, send_at=send_time(ctx))


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
