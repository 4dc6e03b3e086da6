"""Return of a received wire in full, at the request of its sender or because the bank must.

What the pocket cannot cover becomes its overdraft; the return itself is always in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import AccountKind, Direction, JournalKind, PocketStatus
from billfold.payments.wires.rules import messages
from billfold.payments.wires.rules.recording import (
    add_wire,
    queue_message,
    record_wire_transaction,
    referenced_wire,
    return_row,
    send_time,
)
from billfold.payments.wires.types import WireDirection, WireStatus, WireType
from billfold.platform.errors import Refused
from billfold.treasury.overdraft.rules import claw_back
from billfold.treasury.rules.day_end import roll_business_day

if TYPE_CHECKING:
    from billfold.payments.wires.commands import ReturnWire


def return_wire(books: Books, cmd: ReturnWire, ctx: Context) -> Outcome:
    """Book the return and queue its message.

    Refuses: wire-not-completed unless it was received as a payment, wire-already-returned,
    pocket-not-open if its pocket is closed. A rejected return does not count: the new one reverses
    the reversal of the rejected one.
    """
    book = book_of(books, cmd.customers[0])
    original, returned, booked_journal_no = referenced_wire(book, cmd.original_id)
    if returned:
        raise Refused("wire-already-returned", "The wire is already returned.")
    arrived = original.direction == WireDirection.INCOMING and original.wire_type == WireType.PAYMENT
    if not arrived or original.status != WireStatus.COMPLETED or original.message is None:
        raise Refused("wire-not-completed", "Only a received payment can be returned.")
    pocket = book.pockets[original.pocket_id]
    if pocket.status == PocketStatus.CLOSED:
        raise Refused("pocket-not-open", "The pocket is closed and holds no money.")
    send_at = send_time(ctx)
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.PAYMENT, ctx, settles_on=ctx.business_date, reverses=booked_journal_no)
    group = ctx.ids.next_group()
    wire = return_row(
        original,
        ctx,
        ctx.ids.next(),
        direction=WireDirection.OUTGOING,
        status=WireStatus.PENDING,
        portal_id=original.portal_id,
        amount=original.amount,
        description=cmd.information,
        transaction_id=group,
        entry_no=book.entry_no,
        send_at=send_at,
    )
    posting_no = claw_back(
        book,
        pocket,
        ctx,
        amount=original.amount,
        to=book.house_account(AccountKind.RAIL_WIRE),
        price_of=ctx.t0_bid,
        settles_on=ctx.business_date,
    )
    record_wire_transaction(
        book,
        pocket,
        wire,
        posting_no=posting_no,
        group=group,
        direction=Direction.DEBIT,
        title="Wire returned",
        description=f"Wire from {original.counterparty_name} went back: {cmd.code}",
        settles_at=send_at,
    )
    book.close()
    add_wire(book, wire)
    terms = messages.payment_return(
        messages.payment_message_of(original),
        bank=ctx.terms.routing_number,
        reason=cmd.code,
        information=cmd.information or "Returned as requested",
    )
    queue_message(book, ctx, "pacs.004", wire_id=wire.wire_id, terms=terms, send_at=send_at)
    return {"wire_id": str(wire.wire_id), "status": WireStatus.PENDING, "reason": None}
