"""Incoming wires: the fields of the message; each is recorded, and one that is not accepted queues its return."""

from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.book.holdings import PocketBook
from billfold.ledger.context import Context
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.wires.iso20022.types import CreditTransfer
from billfold.payments.wires.rules import messages
from billfold.payments.wires.rules.recording import add_wire, queue_message, send_time
from billfold.payments.wires.types import WireDirection, WireRow, WireStatus, WireType

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
