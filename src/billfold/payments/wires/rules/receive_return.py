"""Return of a wire that we sent: it is booked as a wire of its own and invested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.events import kinds
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import NOT_CLOSED, AccountKind, Direction, JournalKind
from billfold.payments.deposits.rules import sweep_and_invest
from billfold.payments.wires.rules.recording import (
    add_wire,
    raise_wire_event,
    record_wire_transaction,
    referenced_wire,
    return_row,
)
from billfold.payments.wires.types import WireDirection, WireStatus
from billfold.platform.errors import Refused
from billfold.platform.money import format_usd
from billfold.treasury.rules.day_end import roll_business_day

if TYPE_CHECKING:
    from billfold.payments.wires.commands import ReceiveWireReturn
    from billfold.payments.wires.types import WireRow


def receive_wire_return(books: Books, cmd: ReceiveWireReturn, ctx: Context) -> Outcome:
    """Book the returned money, once per wire.

    Refuses: wire-already-returned, wire-not-completed if the wire was never sent, pocket-not-open
    if its pocket is closed.
    """
    book = book_of(books, cmd.customers[0])
    original, returned, _ = referenced_wire(book, cmd.original_id)
    if returned:
        raise Refused("wire-already-returned", "The wire is already returned.")
    if original.status == WireStatus.REJECTED or original.entry_no is None:
        raise Refused("wire-not-completed", "The wire has not settled and cannot be returned.")
    pocket = book.pockets[original.pocket_id]
    if pocket.status not in NOT_CLOSED:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.DEPOSIT, ctx, settles_on=ctx.settles_on, reverses=original.entry_no)
    group = ctx.ids.next_group()
    wire = return_row(
        original,
        ctx,
        cmd.wire_id,
        direction=WireDirection.INCOMING,
        status=WireStatus.COMPLETED,
        amount=cmd.amount,
        imad=cmd.imad,
        omad=cmd.omad,
        description=_description(original, cmd),
        message=cmd.message,
        transaction_id=group,
        entry_no=book.entry_no,
        settled_at=ctx.now,
    )
    posting_no = book.post(book.house_account(AccountKind.RAIL_WIRE), pocket.bank, cmd.amount)
    sweep_and_invest(book, pocket, ctx, amount=cmd.amount)
    record_wire_transaction(
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
    add_wire(book, wire)
    raise_wire_event(book, ctx, kinds.WIRE_IN_SUCCESS, wire_id=cmd.wire_id, pocket_id=original.pocket_id)
    return {"wire_id": str(cmd.wire_id), "status": WireStatus.COMPLETED, "transaction_id": str(group)}


def _description(original: WireRow, cmd: ReceiveWireReturn) -> str:
    """Return the return reason and the charges that banks deducted."""
    why = cmd.information or cmd.code
    kept = original.amount - cmd.amount
    return f"{why}, less {format_usd(kept)} in charges" if kept else why
