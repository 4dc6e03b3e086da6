"""Status changes of a sent wire: submitted, completed or rejected.

COMPLETED is final: a later return is a wire of its own (`returns`).
"""

from billfold.events import kinds
from billfold.ledger.book import recording as record
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, EventKind, JournalKind, PocketStatus, TransactionType
from billfold.payments.wires.commands import CompleteWire, RejectWire, SubmitWire
from billfold.payments.wires.rules import cut_offs
from billfold.payments.wires.rules.recording import raise_wire_event, record_wire_transaction, referenced_wire
from billfold.payments.wires.types import WireRow, WireStatus, WireType
from billfold.platform.errors import InvariantError
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.sweeps.rules import sweep_and_invest

_UNDER_WAY = frozenset({WireStatus.PENDING, WireStatus.PROCESSING})


@decides(SubmitWire)
def submit_wire(books: Books, cmd: SubmitWire, ctx: Context) -> Outcome:
    """PENDING becomes PROCESSING. A later status stays."""
    book = book_of(books, cmd.customers[0])
    wire = referenced_wire(book, cmd.wire_id).row
    if wire.status != WireStatus.PENDING:
        return _outcome(wire, wire.status)
    return _set_status(book, ctx, wire, WireStatus.PROCESSING, kind=kinds.WIRE_OUT_PROCESSING, imad=cmd.imad)


@decides(CompleteWire)
def complete_wire(books: Books, cmd: CompleteWire, ctx: Context) -> Outcome:
    """PENDING or PROCESSING becomes COMPLETED. A final status stays."""
    book = book_of(books, cmd.customers[0])
    wire = referenced_wire(book, cmd.wire_id).row
    if wire.status not in _UNDER_WAY:
        return _outcome(wire, wire.status)
    omad = {} if cmd.omad is None else {"omad": cmd.omad}
    kind = kinds.WIRE_OUT_SUCCESS
    return _set_status(book, ctx, wire, WireStatus.COMPLETED, kind=kind, settled_at=ctx.now, **omad)


@decides(RejectWire)
def reject_wire(books: Books, cmd: RejectWire, ctx: Context) -> Outcome:
    """Reverse the wire and its fee, and invest the money; one whose money has come back stays as it is.

    The outcome has `no_pocket` if the pocket was closed in the meantime: the caller holds the money in
    suspense.
    """
    book = book_of(books, cmd.customers[0])
    wire, outstanding, _ = referenced_wire(book, cmd.wire_id)
    if wire.status not in _UNDER_WAY or outstanding < wire.amount:
        return _outcome(wire, wire.status)
    reason = cut_offs.reason_of(cmd.code)
    taken = book.pockets[wire.pocket_id].status != PocketStatus.CLOSED
    if taken:
        _refund(book, ctx, wire, reason=reason)
    outcome = _set_status(book, ctx, wire, WireStatus.REJECTED, kind=kinds.WIRE_OUT_REJECTED, reason=reason)
    outcome |= {"reason": reason}
    return outcome if taken else {**outcome, "no_pocket": True}


def _refund(book: Book, ctx: Context, wire: WireRow, reason: str) -> None:
    if wire.entry_no is None:
        raise InvariantError("A wire in process has no journal entry.", wire_id=str(wire.wire_id))
    pocket = book.pockets[wire.pocket_id]
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.DEPOSIT, ctx, settles_on=ctx.settles_on, reverses=wire.entry_no)
    group = ctx.ids.next_group()
    posting_no = book.post(book.internal_account(AccountKind.RAIL_WIRE), pocket.bank, wire.amount)
    record_wire_transaction(
        book,
        pocket,
        wire,
        posting_no=posting_no,
        group=group,
        direction=Direction.CREDIT,
        title="Wire reversed",
        description=_was_rejected(wire, reason),
        settles_at=max(ctx.now, wire.send_at or ctx.now),
        wire_type=WireType.REVERSAL,
    )
    if wire.fee:
        posting_no = book.post(book.internal_account(AccountKind.PROMOTIONS), pocket.bank, wire.fee)
        record.transaction(
            book,
            pocket,
            posting_no=posting_no,
            group=group,
            place=2,
            type=TransactionType.CREDIT,
            direction=Direction.CREDIT,
            amount=wire.fee,
            title="Wire fee returned",
            description="The wire was rejected",
            settles_at=book.booked_at,
            details={"credit_type": "ADJUSTMENT"},
        )
    sweep_and_invest(book, pocket, ctx, amount=wire.amount + wire.fee)
    book.close()


def _was_rejected(wire: WireRow, reason: str) -> str:
    sent = "Wire" if wire.wire_type == WireType.PAYMENT else "Return of a wire"
    return f"{sent} to {wire.counterparty_name} was rejected: {reason}"


def _set_status(
    book: Book,
    ctx: Context,
    wire: WireRow,
    status: WireStatus,
    *,
    kind: EventKind[kinds.WirePayload],
    **more: object,
) -> Outcome:
    """Raise the event of a new status and record it; return the outcome."""
    raise_wire_event(book, ctx, kind, wire_id=wire.wire_id, pocket_id=wire.pocket_id)
    book.change(WireRow, wire.wire_id, status=status, updated_at=ctx.now, **more)
    return _outcome(wire, status)


def _outcome(wire: WireRow, status: WireStatus) -> Outcome:
    return {"wire_id": str(wire.wire_id), "status": status, "reason": wire.reason}
