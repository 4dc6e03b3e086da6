"""Returns of wires, each a separate wire: returns to us, and full returns by us.

Any amount that the pocket cannot cover becomes its overdraft; the return itself is always in full.
"""

from uuid import UUID

from billfold.accounts.pockets.rules import require_not_closed
from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, JournalKind
from billfold.payments.wires.commands import ReceiveWireReturn, ReturnWire, WireDirection, WireRow, WireStatus, WireType
from billfold.payments.wires.rules import messages, recording
from billfold.platform.errors import Refused
from billfold.platform.money import format_usd
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.overdraft import claw_back
from billfold.treasury.rules.sweep import sweep_and_invest


@decides(ReceiveWireReturn)
def receive_wire_return(books: Books, cmd: ReceiveWireReturn, ctx: Context) -> Outcome:
    """Book the returned money: all of a wire, or a part whose remainder stays outstanding.

    Refuses: wire-already-returned if less is outstanding, wire-not-completed if the wire has not settled,
    pocket-not-open if its pocket is closed.
    """
    book = book_of(books, cmd.customers[0])
    original, outstanding, *_ = recording.referenced_wire(book, cmd.original_id)
    if outstanding < cmd.amount:
        raise Refused("wire-already-returned", f"{format_usd(outstanding)} of the wire is outstanding.")
    if original.status != WireStatus.COMPLETED or original.entry_no is None:
        raise Refused("wire-not-completed", "The wire has not settled and cannot be returned.")
    pocket = book.pockets[original.pocket_id]
    require_not_closed(pocket)
    roll_business_day(book, pocket, ctx)
    reverses = original.entry_no if outstanding == original.amount else None  # only the first return does
    book.begin(JournalKind.DEPOSIT, ctx, settles_on=ctx.settles_on, reverses=reverses)
    group = ctx.ids.next_group()
    wire = recording.return_row(
        original,
        ctx,
        cmd.wire_id,
        direction=WireDirection.INCOMING,
        status=WireStatus.COMPLETED,
        amount=cmd.amount,
        imad=cmd.imad,
        omad=cmd.omad,
        description=_description(cmd, outstanding),
        message=cmd.message,
        transaction_id=group,
        entry_no=book.entry_no,
        settled_at=ctx.now,
    )
    posting_no = book.post(book.internal_account(AccountKind.RAIL_WIRE), pocket.bank, cmd.amount)
    sweep_and_invest(book, pocket, ctx, amount=cmd.amount)
    recording.record_wire_transaction(
        book,
        pocket,
        wire,
        posting_no=posting_no,
        group=group,
        direction=Direction.CREDIT,
        title="Wire returned",
        description=f"Wire to {original.counterparty_name}: {wire.description}",
        settles_at=book.booked_at,
    )
    book.close()
    recording.add_wire(book, wire)
    recording.raise_wire_event(book, ctx, kinds.WIRE_IN_SUCCESS, wire_id=cmd.wire_id, pocket_id=original.pocket_id)
    return {"wire_id": str(cmd.wire_id), "status": WireStatus.COMPLETED, "transaction_id": str(group)}


def _description(cmd: ReceiveWireReturn, outstanding: int) -> str:
    """Return the return reason, the deducted charges and the amount still outstanding."""
    rest = outstanding - cmd.amount - cmd.charges
    parts = [cmd.information or cmd.code]
    parts += [f"less {format_usd(cmd.charges)} in charges"] if cmd.charges else []
    return ", ".join(parts + ([f"{format_usd(rest)} stays claimed"] if rest > 0 else []))


@decides(ReturnWire)
def return_wire(books: Books, cmd: ReturnWire, ctx: Context) -> Outcome:
    """Book the return and queue its message.

    Refuses: wire-not-completed unless it was received as a payment, wire-already-returned,
    pocket-not-open if its pocket is closed. A rejected return does not count: the new one reverses
    the reversal of the rejected one.
    """
    book = book_of(books, cmd.customers[0])
    original, booked_journal_no = _returnable(book, cmd.original_id)
    pocket = book.pockets[original.pocket_id]
    send_at = recording.send_time(ctx)
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.PAYMENT, ctx, settles_on=ctx.business_date, reverses=booked_journal_no)
    group = ctx.ids.next_group()
    wire = recording.return_row(
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
        book, pocket, ctx, amount=original.amount, to=book.internal_account(AccountKind.RAIL_WIRE), terms=ctx.same_day
    )
    recording.record_wire_transaction(
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
    recording.add_wire(book, wire)
    terms = messages.payment_return(
        messages.payment_message_of(original),
        bank=ctx.terms.routing_number,
        reason=cmd.code,
        information=cmd.information or "Returned as requested",
    )
    recording.queue_message(book, ctx, "pacs.004", wire_id=wire.wire_id, terms=terms, send_at=send_at)
    return {"wire_id": str(wire.wire_id), "status": WireStatus.PENDING, "reason": None}


def _returnable(book: Book, wire_id: UUID) -> tuple[WireRow, int | None]:
    """Return a received payment with the journal entry that last booked its money. Raises Refused."""
    original, outstanding, booked_journal_no, _ = recording.referenced_wire(book, wire_id)
    if outstanding < original.amount:
        raise Refused("wire-already-returned", "The wire is already returned.")
    arrived = original.direction == WireDirection.INCOMING and original.wire_type == WireType.PAYMENT
    if not arrived or original.status != WireStatus.COMPLETED or original.message is None:
        raise Refused("wire-not-completed", "Only a received payment can be returned.")
    require_not_closed(book.pockets[original.pocket_id])
    return original, booked_journal_no
