"""Return of a wire that we sent: it is booked as a wire of its own and invested."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.events import kinds, payloads
from billfold.ledger.book import recording as record
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import NOT_CLOSED, AccountKind, Direction, JournalKind, TransactionType
from billfold.payments.deposits.rules import sweep_and_invest
from billfold.payments.wires.rules import cut_offs
from billfold.payments.wires.rules.send import add_wire
from billfold.payments.wires.rules.status import referenced_wire, wire_details
from billfold.payments.wires.types import WireDirection, WireRow, WireStatus, WireType
from billfold.platform.errors import Refused
from billfold.platform.money import format_usd
from billfold.treasury.rules.day_end import roll_business_day

if TYPE_CHECKING:
    from billfold.payments.wires.commands import ReceiveWireReturn

_TAKES = NOT_CLOSED


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
    if pocket.status not in _TAKES:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.DEPOSIT, ctx, settles_on=ctx.settles_on, reverses=original.entry_no)
    group = ctx.ids.next_group()
    wire = _wire(original, cmd, ctx, group=group, entry_no=book.entry_no)
    posting_no = book.post(book.house_account(AccountKind.RAIL_WIRE), pocket.bank, cmd.amount)
    sweep_and_invest(book, pocket, ctx, amount=cmd.amount)
    record.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.WIRE,
        direction=Direction.CREDIT,
        amount=cmd.amount,
        title="Wire returned",
        description=f"Wire to {original.counterparty_name}: {_description(original, cmd)}",
        settles_at=book.booked_at,
        details=wire_details(wire, WireType.RETURN),
    )
    book.close()
    add_wire(book, wire)
    payload = payloads.WirePayload(wire_id=cmd.wire_id, service_account_id=original.pocket_id)
    record.event(book, ctx, kinds.WIRE_IN_SUCCESS, payload=payload)
    return {"wire_id": str(cmd.wire_id), "status": WireStatus.COMPLETED, "transaction_id": str(group)}


def _description(original: WireRow, cmd: ReceiveWireReturn) -> str:
    """Return the return reason and the charges that banks deducted."""
    why = cmd.information or cmd.code
    kept = original.amount - cmd.amount
    return f"{why}, less {format_usd(kept)} in charges" if kept else why


def _wire(original: WireRow, cmd: ReceiveWireReturn, ctx: Context, group: UUID, entry_no: int) -> WireRow:
    return WireRow(
        customer_id=original.customer_id,
        wire_id=cmd.wire_id,
        partner_id=original.partner_id,
        pocket_id=original.pocket_id,
        direction=WireDirection.INCOMING,
        wire_type=WireType.RETURN,
        original_wire_id=original.wire_id,
        status=WireStatus.COMPLETED,
        amount=cmd.amount,
        counterparty_id=original.counterparty_id,
        counterparty_name=original.counterparty_name,
        reference_number=cut_offs.reference_of(ctx.seed, cmd.wire_id),
        uetr=original.uetr,
        imad=cmd.imad,
        omad=cmd.omad,
        description=_description(original, cmd),
        message=cmd.message,
        transaction_id=group,
        entry_no=entry_no,
        created_at=ctx.now,
        settled_at=ctx.now,
        updated_at=ctx.now,
    )
