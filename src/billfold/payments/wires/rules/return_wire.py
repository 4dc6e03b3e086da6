"""Return of a received wire in full, at the request of its sender or because the bank must.

What the pocket cannot cover becomes its overdraft; the return itself is always in full.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.ledger.book import recording as record
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import AccountKind, Direction, JournalKind, PocketStatus, TransactionType
from billfold.payments.wires.rules import cut_offs, messages
from billfold.payments.wires.rules.send import add_wire, queue_message
from billfold.payments.wires.rules.status import referenced_wire, wire_details
from billfold.payments.wires.types import WireDirection, WireRow, WireStatus, WireType
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
    send_at = _send_at(ctx)
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.PAYMENT, ctx, settles_on=ctx.business_date, reverses=booked_journal_no)
    group = ctx.ids.next_group()
    wire = _wire(original, cmd, ctx, wire_id=ctx.ids.next(), group=group, journal=book.entry_no)
    posting_no = claw_back(
        book,
        pocket,
        ctx,
        amount=original.amount,
        to=book.house_account(AccountKind.RAIL_WIRE),
        price_of=ctx.t0_bid,
        settles_on=ctx.business_date,
    )
    record.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.WIRE,
        direction=Direction.DEBIT,
        amount=original.amount,
        title="Wire returned",
        description=f"Wire from {original.counterparty_name} went back: {cmd.code}",
        settles_at=send_at,
        details=wire_details(wire, WireType.RETURN),
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


def _wire(original: WireRow, cmd: ReturnWire, ctx: Context, *, wire_id: UUID, group: UUID, journal: int) -> WireRow:
    return WireRow(
        customer_id=original.customer_id,
        wire_id=wire_id,
        partner_id=original.partner_id,
        pocket_id=original.pocket_id,
        portal_id=original.portal_id,
        direction=WireDirection.OUTGOING,
        wire_type=WireType.RETURN,
        original_wire_id=original.wire_id,
        status=WireStatus.PENDING,
        amount=original.amount,
        counterparty_id=original.counterparty_id,
        counterparty_name=original.counterparty_name,
        reference_number=cut_offs.reference_of(ctx.seed, wire_id),
        uetr=original.uetr,
        description=cmd.information,
        transaction_id=group,
        entry_no=journal,
        created_at=ctx.now,
        updated_at=ctx.now,
        send_at=_send_at(ctx),
    )


def _send_at(ctx: Context) -> datetime:
    return cut_offs.send_time(ctx.now, ctx.calendars, ctx.terms.wire_hours, international=False)
