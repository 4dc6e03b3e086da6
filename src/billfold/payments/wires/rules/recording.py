"""Recording of wires, shared by their rules: the wire, its transaction, its event and its messages."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook, to_json
from billfold.ledger.context import Context
from billfold.ledger.types import Direction, EventKind, TransactionType
from billfold.payments.wires.commands import (
    IncomingWireFields,
    QueuedMessage,
    ReferencedWire,
    WireDirection,
    WireRow,
    WireStatus,
    WireType,
)
from billfold.payments.wires.iso20022.types import CreditTransfer, PaymentReturn
from billfold.payments.wires.rules import cut_offs, messages
from billfold.payments.wires.rules.messages import MessageFields
from billfold.platform.errors import NotFound


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


WIRE_SEND = "wire.send"
"""The kind of scheduled job that sends queued messages."""


def referenced_wire(book: Book, wire_id: UUID) -> ReferencedWire:
    """Return the wire of the command. Raises NotFound."""
    seen: ReferencedWire | None = book.referenced.get(wire_id)
    if seen is None:
        raise NotFound("There is no such wire.")
    return seen


def add_wire(book: Book, wire: WireRow) -> None:
    """Record a new wire."""
    book.draft.add(wire)
    book.keep_fingerprint(wire)
    book.enter("wire", str(wire.wire_id), wire.wire_id)


def return_row(
    original: WireRow, ctx: Context, wire_id: UUID, direction: WireDirection, *, status: WireStatus, **fields: Any
) -> WireRow:
    """Return the row of a return, which is a separate wire."""
    return WireRow(
        customer_id=original.customer_id,
        wire_id=wire_id,
        partner_id=original.partner_id,
        pocket_id=original.pocket_id,
        direction=direction,
        wire_type=WireType.RETURN,
        original_wire_id=original.wire_id,
        status=status,
        counterparty_id=original.counterparty_id,
        counterparty_name=original.counterparty_name,
        reference_number=cut_offs.reference_of(ctx.seed, wire_id),
        uetr=original.uetr,
        end_to_end_identification=original.end_to_end_identification,
        created_at=ctx.now,
        updated_at=ctx.now,
        **fields,
    )


def record_wire_transaction(
    book: Book,
    pocket: PocketBook,
    wire: WireRow,
    *,
    posting_no: int,
    group: UUID,
    direction: Direction,
    title: str,
    description: str,
    settles_at: datetime,
    wire_type: WireType | None = None,
    remittance: dict[str, Any] | None = None,
) -> None:
    """Record the transaction of a posting that a wire caused."""
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.WIRE,
        direction=direction,
        amount=wire.amount,
        title=title,
        description=description,
        settles_at=settles_at,
        details=wire_details(wire, wire_type or wire.wire_type),
        remittance=remittance,
    )


def wire_details(wire: WireRow, wire_type: str) -> dict[str, str | None]:
    """Return the transaction details of a wire."""
    return {
        "wire_type": wire_type,
        "wire_id": str(wire.wire_id),
        "original_wire_id": str(wire.original_wire_id) if wire.original_wire_id else None,
        "reference_number": wire.reference_number,
        "counterparty_name": wire.counterparty_name,
        "counterparty_id": str(wire.counterparty_id) if wire.counterparty_id else None,
        "portal_id": str(wire.portal_id) if wire.portal_id else None,
    }


def raise_wire_event(
    book: Book, ctx: Context, kind: EventKind[kinds.WirePayload], wire_id: UUID, pocket_id: UUID
) -> None:
    """Raise an event about a wire."""
    recording.event(book, ctx, kind, payload=kinds.WirePayload(wire_id=wire_id, service_account_id=pocket_id))


def send_time(ctx: Context, *, international: bool = False) -> datetime:
    """Return when a message accepted now is sent and settles."""
    return cut_offs.send_time(ctx.now, ctx.calendars, ctx.terms.wire_hours, international=international)


def queue_message(
    book: Book, ctx: Context, kind: str, wire_id: UUID, terms: MessageFields, *, send_at: datetime
) -> None:
    """Queue a message about a wire, to be sent at its instant."""
    messages.expect_sendable(kind, terms)
    message = QueuedMessage(
        message_id=ctx.ids.next(),
        customer_id=book.customer_id,
        wire_id=wire_id,
        kind=kind,
        send_at=send_at,
        terms=to_json(terms),
    )
    book.draft.add(message)
    book.keep_fingerprint(message)
    book.schedule(WIRE_SEND, message.message_id, send_at)
