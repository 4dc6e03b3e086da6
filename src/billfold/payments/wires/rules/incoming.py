"""Incoming wires: each is recorded; a wire that is not accepted queues its return."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.payments.wires.iso20022.types import CreditTransfer
from billfold.payments.wires.rules import cut_offs, messages
from billfold.payments.wires.rules.send import add_wire, queue_message
from billfold.payments.wires.types import IncomingWireFields, WireDirection, WireRow, WireStatus, WireType

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import PocketBook
    from billfold.ledger.commands import Context

_decode = msgspec.json.Decoder(CreditTransfer).decode
_NOT_TAKEN = "The account takes no payments"


def record_incoming_wire(
    book: Book,
    ctx: Context,
    arrived: IncomingWireFields,
    pocket: PocketBook,
    *,
    wire_id: UUID,
    portal_id: UUID,
    amount: int,
    description: str,
    group: UUID | None,
    counterparty_id: UUID | None,
) -> None:
    """Record an incoming wire; `group` is its transaction, None if it is rejected."""
    taken = group is not None
    add_wire(
        book,
        WireRow(
            customer_id=book.customer_id,
            wire_id=wire_id,
            partner_id=pocket.partner_id,
            pocket_id=pocket.pocket_id,
            portal_id=portal_id,
            direction=WireDirection.INCOMING,
            wire_type=WireType.RETURN if arrived.original_wire_id else WireType.PAYMENT,
            original_wire_id=arrived.original_wire_id,
            status=WireStatus.COMPLETED if taken else WireStatus.REJECTED,
            reason=None if taken else "ACCOUNT_UNAVAILABLE",
            amount=amount,
            counterparty_id=counterparty_id,
            counterparty_name=arrived.sender_name,
            reference_number=arrived.reference_number,
            uetr=arrived.uetr,
            imad=arrived.imad,
            omad=arrived.omad,
            description=description or None,
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
        _queue_return(book, ctx, wire_id, message=arrived.message)


def _queue_return(book: Book, ctx: Context, wire_id: UUID, message: str) -> None:
    terms = messages.payment_return(
        _decode(message), bank=ctx.terms.routing_number, reason="ACCOUNT_UNAVAILABLE", information=_NOT_TAKEN
    )
    send_at = cut_offs.send_time(ctx.now, ctx.calendars, ctx.terms.wire_hours, international=False)
    queue_message(book, ctx, "pacs.004", wire_id=wire_id, terms=terms, send_at=send_at)
