"""Sending a wire: booked in full when it is accepted; its message is queued until Fedwire is open.

From then on the rail account holds the money, so that it cannot be short on sending. Later the
message is submitted, and the wire completed, or rejected and reversed (`status`).
"""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.agreements.rules import require_accepted
from billfold.accounts.counterparties.rules.verification_kinds import check_payable
from billfold.accounts.counterparties.types import Payee
from billfold.accounts.holds.rules import capture_hold
from billfold.accounts.pockets.rules import pocket_of, require_not_closed, require_open
from billfold.events import kinds
from billfold.ledger.book import recording as book_recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, EventKind, JournalKind, PocketStatus, Rail, TransactionType
from billfold.payments.wires.commands import (
    RELEASED,
    WAITING_FOR_FUNDS,
    CancelWire,
    CompleteWire,
    HoldWire,
    RejectWire,
    ReleaseWire,
    SendWire,
    SubmitWire,
    WireDirection,
    WireRow,
    WireStatus,
    WireType,
)
from billfold.payments.wires.rules import cut_offs, messages, recording
from billfold.platform.errors import InvariantError, NotFound, Refused
from billfold.treasury.rules.day_end import pay_fee, roll_business_day
from billfold.treasury.rules.sweep import sweep_and_invest
from billfold.treasury.rules.withdraw import (
    InsufficientFunds,
    insufficient_funds,
    payable_cents,
    require_at_most,
    require_something,
    withdraw,
)

_UNDER_WAY = frozenset({WireStatus.PENDING, WireStatus.PROCESSING})


@decides(SubmitWire)
def submit_wire(books: Books, cmd: SubmitWire, ctx: Context) -> Outcome:
    """PENDING becomes PROCESSING. A later status is kept."""
    book = book_of(books, cmd.customers[0])
    wire = recording.referenced_wire(book, cmd.wire_id).row
    if wire.status != WireStatus.PENDING:
        return _outcome(wire, wire.status)
    kind = kinds.WIRE_OUT_PROCESSING
    return _set_status(book, ctx, wire, WireStatus.PROCESSING, kind=kind, imad=cmd.imad, reason=None)


@decides(HoldWire)
def hold_wire(books: Books, cmd: HoldWire, ctx: Context) -> Outcome:
    """Say why a due wire has not left. One that has left, or was released, is kept."""
    book = book_of(books, cmd.customers[0])
    wire = recording.referenced_wire(book, cmd.wire_id).row
    if wire.status != WireStatus.PENDING or wire.reason is not None:
        return _outcome(wire, wire.status)
    kind = kinds.WIRE_OUT_QUEUED
    return _set_status(book, ctx, wire, WireStatus.PENDING, kind=kind, reason=WAITING_FOR_FUNDS)


@decides(ReleaseWire)
def release_wire(books: Books, cmd: ReleaseWire, ctx: Context) -> Outcome:
    """Let a waiting wire leave with the next file. Refuses: wire-not-waiting."""
    book = book_of(books, cmd.customers[0])
    wire = recording.referenced_wire(book, cmd.wire_id).row
    if wire.status != WireStatus.PENDING or wire.reason != WAITING_FOR_FUNDS:
        raise Refused("wire-not-waiting", f"The wire is {wire.status} and does not wait for funds of the bank.")
    book.change(WireRow, wire.wire_id, reason=RELEASED, updated_at=ctx.now)
    book.schedule(recording.WIRE_SEND, wire.wire_id, recording.send_time(ctx))
    return _outcome(wire, wire.status) | {"reason": RELEASED}


@decides(CompleteWire)
def complete_wire(books: Books, cmd: CompleteWire, ctx: Context) -> Outcome:
    """PENDING or PROCESSING becomes COMPLETED. A final status is kept."""
    book = book_of(books, cmd.customers[0])
    wire = recording.referenced_wire(book, cmd.wire_id).row
    if wire.status not in _UNDER_WAY:
        return _outcome(wire, wire.status)
    omad: dict[str, Any] = {"reason": None} | ({} if cmd.omad is None else {"omad": cmd.omad})
    kind = kinds.WIRE_OUT_SUCCESS
    return _set_status(book, ctx, wire, WireStatus.COMPLETED, kind=kind, settled_at=ctx.now, **omad)


@decides(RejectWire)
def reject_wire(books: Books, cmd: RejectWire, ctx: Context) -> Outcome:
    """Reverse the wire and its fee, and invest the money; a wire whose money was already returned is not changed.

    The outcome has `no_pocket` if the pocket was closed in the meantime: the caller holds the money in
    suspense.
    """
    book = book_of(books, cmd.customers[0])
    wire, outstanding, *_ = recording.referenced_wire(book, cmd.wire_id)
    if wire.status not in _UNDER_WAY or outstanding < wire.amount:
        return _outcome(wire, wire.status)
    reason = cut_offs.reason_of(cmd.code)
    taken = book.pockets[wire.pocket_id].status != PocketStatus.CLOSED
    if taken:
        _refund_wire(book, ctx, wire, reason=reason)
    outcome = _set_status(book, ctx, wire, WireStatus.REJECTED, kind=kinds.WIRE_OUT_REJECTED, reason=reason)
    return outcome if taken else {**outcome, "no_pocket": True}


_CANCELLED = "CANCELED"
"""The reason of a wire that its customer cancelled."""


@decides(CancelWire)
def cancel_wire(books: Books, cmd: CancelWire, ctx: Context) -> Outcome:
    """Reverse the wire and its fee, like a rejected one. Refuses: wire-not-pending, pocket-not-open.

    The message is in a file from the commit of the sender, which locks the customers of the wires it takes.
    """
    book = book_of(books, cmd.customers[0])
    wire, _, _, is_in_file = recording.referenced_wire(book, cmd.wire_id)
    if wire.status != WireStatus.PENDING or wire.wire_type != WireType.PAYMENT:
        raise Refused("wire-not-pending", f"The {wire.direction.lower()} wire is {wire.status}.")
    if is_in_file:
        raise Refused("wire-not-pending", "The message of the wire is in a file for Fedwire.")
    require_not_closed(book.pockets[wire.pocket_id])
    _refund_wire(book, ctx, wire, reason=_CANCELLED)
    return _set_status(book, ctx, wire, WireStatus.REJECTED, kind=kinds.WIRE_OUT_REJECTED, reason=_CANCELLED)


def _refund_wire(book: Book, ctx: Context, wire: WireRow, reason: str) -> None:
    if wire.entry_no is None:
        raise InvariantError("A wire in process has no journal entry.", wire_id=str(wire.wire_id))
    pocket = book.pockets[wire.pocket_id]
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.DEPOSIT, ctx, settles_on=ctx.settles_on, reverses=wire.entry_no)
    group = ctx.ids.next_group()
    posting_no = book.post(book.internal_account(AccountKind.RAIL_WIRE), pocket.bank, wire.amount)
    recording.record_wire_transaction(
        book,
        pocket,
        wire,
        posting_no=posting_no,
        group=group,
        direction=Direction.CREDIT,
        title="Wire reversed",
        description=_why_undone(wire, reason),
        settles_at=max(ctx.now, wire.send_at or ctx.now),
        wire_type=WireType.REVERSAL,
    )
    if wire.fee:
        posting_no = book.post(book.internal_account(AccountKind.PROMOTIONS), pocket.bank, wire.fee)
        book_recording.transaction(
            book,
            pocket,
            posting_no=posting_no,
            group=group,
            place=2,
            type=TransactionType.CREDIT,
            direction=Direction.CREDIT,
            amount=wire.fee,
            title="Wire fee returned",
            description="The wire was cancelled" if reason == _CANCELLED else "The wire was rejected",
            settles_at=book.booked_at,
            details={"credit_type": "ADJUSTMENT"},
        )
    sweep_and_invest(book, pocket, ctx, amount=wire.amount + wire.fee)
    book.close()


def _why_undone(wire: WireRow, reason: str) -> str:
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
    """Raise the event of a new status and record it, visible to later commands of the batch; return the outcome."""
    recording.raise_wire_event(book, ctx, kind, wire_id=wire.wire_id, pocket_id=wire.pocket_id)
    columns: dict[str, Any] = {"status": status, "updated_at": ctx.now, **more}
    book.change(WireRow, wire.wire_id, **columns)
    seen = recording.referenced_wire(book, wire.wire_id)
    changed = seen._replace(row=msgspec.structs.replace(wire, **columns))
    book.put(book.referenced, wire.wire_id, changed)
    return _outcome(wire, status) | {name: value for name, value in more.items() if name == "reason"}


def _outcome(wire: WireRow, status: WireStatus) -> Outcome:
    return {"wire_id": str(wire.wire_id), "status": status, "reason": wire.reason}


@decides(SendWire)
def send_wire(books: Books, cmd: SendWire, ctx: Context) -> Outcome:
    """Book the wire and queue its message. A wire that screening stops is REJECTED and moves nothing.

    Refuses: customer-not-open, agreement-not-accepted, pocket-not-open, pocket-frozen, counterparty-type-mismatch,
    counterparty-not-verified, sanction-screen-failed, insufficient-funds. NotFound for a pocket
    or counterparty that is not the customer's.

    If the wire was approved before, a refusal raises `wire.rejected` and becomes the outcome.
    """
    book = book_of(books, cmd.customers[0])
    try:
        return _send_wire(book, cmd, ctx)
    except Refused as refusal:
        if not cmd.approved or cmd.wire_id is None:
            raise
        book.undo()
        recording.raise_wire_event(book, ctx, kinds.WIRE_OUT_REJECTED, wire_id=cmd.wire_id, pocket_id=cmd.pocket_id)
        return {"status": WireStatus.REJECTED, "code": refusal.code}


def _send_wire(book: Book, cmd: SendWire, ctx: Context) -> Outcome:
    pocket = _payable_pocket(book, cmd, ctx)
    payee = _payable_counterparty(book, cmd)
    wire = _requested_wire(book, pocket, cmd, ctx=ctx, payee=payee)
    if reason := ctx.terms.screening.stopped_wire(cmd.amount):
        wire = msgspec.structs.replace(wire, status=WireStatus.REJECTED, reason=reason)
        recording.add_wire(book, wire)
        recording.raise_wire_event(book, ctx, kinds.WIRE_OUT_REJECTED, wire_id=wire.wire_id, pocket_id=cmd.pocket_id)
    else:
        send_at = recording.send_time(ctx, international=payee.type == "international_wire")
        wire = _post_wire(book, pocket, wire, cmd=cmd, ctx=ctx, send_at=send_at)
        recording.add_wire(book, wire)
        _queue_message(book, ctx, payee, wire=wire, send_at=send_at)
    return {"wire_id": str(wire.wire_id), "status": wire.status, "reason": wire.reason, "amount": wire.amount}


# -- conditions -----------------------------------------------------------------------


def _payable_pocket(book: Book, cmd: SendWire, ctx: Context) -> PocketBook:
    pocket = pocket_of(book, cmd.pocket_id)
    require_accepted(book, ctx)
    require_open(book, pocket)
    return pocket


def _payable_counterparty(book: Book, cmd: SendWire) -> Payee:
    payee = book.referenced.get(cmd.counterparty_id)
    if not isinstance(payee, Payee):
        raise NotFound("There is no such counterparty.")
    check_payable(payee, Rail.WIRE, unverified_wires=cmd.unverified_wires)
    return payee


# -- booking --------------------------------------------------------------------------


def _post_wire(
    book: Book, pocket: PocketBook, wire: WireRow, cmd: SendWire, ctx: Context, *, send_at: datetime
) -> WireRow:
    """Post the payment and its fee; return the wire as booked."""
    group = ctx.ids.next_group()
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.PAYMENT, ctx, settles_on=ctx.business_date)
    fee, amount = ctx.terms.wire_fee_cents, cmd.amount
    if cmd.keep is not None:
        amount = require_something(payable_cents(pocket, ctx) - cmd.keep - fee, at_most=cmd.at_most)
    capture_hold(book, pocket, ctx, hold_id=cmd.hold_id, amount=amount)
    try:
        amount, posting_no, _ = withdraw(
            book,
            pocket,
            ctx,
            amount=amount,
            terms=ctx.same_day,
            to=book.internal_account(AccountKind.RAIL_WIRE),
            fee_reserve=fee,
        )
        require_at_most(cmd.at_most, amount)
    except InsufficientFunds:
        why = "The pocket cannot raise the amount and its fees today."
        raise insufficient_funds(why, book, pocket, ctx, amount=amount, fee=fee) from None
    wire = msgspec.structs.replace(
        wire, amount=amount, fee=fee, transaction_id=group, entry_no=book.entry_no, send_at=send_at
    )
    recording.record_wire_transaction(
        book,
        pocket,
        wire,
        posting_no=posting_no,
        group=group,
        direction=Direction.DEBIT,
        title="Wire sent",
        description=cmd.description or f"Wire to {wire.counterparty_name}",
        settles_at=send_at,
        remittance=_remittance(cmd),
    )
    if fee:
        _charge_fee(book, pocket, ctx, fee, group=group)
    book.close()
    return wire


def _charge_fee(book: Book, pocket: PocketBook, ctx: Context, fee: int, group: UUID) -> None:
    book_recording.transaction(
        book,
        pocket,
        posting_no=pay_fee(book, pocket, ctx, fee),
        group=group,
        place=2,
        type=TransactionType.FEE,
        direction=Direction.DEBIT,
        amount=fee,
        title="Wire fee",
        description="Fee for a wire",
        settles_at=book.booked_at,
        details={"fee_type": "WIRE_FEE", "related_transaction_id": str(group)},
    )


def _remittance(cmd: SendWire) -> dict[str, Any] | None:
    reference = cmd.end_to_end_identification
    if not cmd.description and not reference:
        return None
    return {
        "unstructured": [cmd.description] if cmd.description else [],
        "structured": {"end_to_end_identification": reference} if reference else None,
    }


# -- records --------------------------------------------------------------------------


def _requested_wire(book: Book, pocket: PocketBook, cmd: SendWire, ctx: Context, payee: Payee) -> WireRow:
    """Return the wire as requested, with no money moved yet."""
    wire_id = cmd.wire_id or ctx.ids.next()
    return WireRow(
        customer_id=book.customer_id,
        wire_id=wire_id,
        partner_id=pocket.partner_id,
        pocket_id=cmd.pocket_id,
        direction=WireDirection.OUTGOING,
        wire_type=WireType.PAYMENT,
        status=WireStatus.PENDING,
        amount=cmd.amount or 0,
        counterparty_id=cmd.counterparty_id,
        counterparty_name=payee.name,
        reference_number=cut_offs.reference_of(ctx.seed, wire_id),
        uetr=cut_offs.uetr_of(ctx.seed, wire_id),
        description=cmd.description,
        wire_instructions=cmd.wire_instructions or payee.details.get("wire_instructions"),
        end_to_end_identification=cmd.end_to_end_identification,
        created_by=cmd.created_by,
        request=cmd.request,
        created_at=ctx.now,
        updated_at=ctx.now,
    )


def _queue_message(book: Book, ctx: Context, payee: Payee, wire: WireRow, send_at: datetime) -> None:
    bank, correspondent = ctx.terms.routing_number, ctx.terms.correspondent
    terms = messages.credit_transfer(wire, payee, payer=book.name, bank=bank, correspondent=correspondent)
    recording.queue_message(book, ctx, "pacs.008", wire_id=wire.wire_id, terms=terms, send_at=send_at)
