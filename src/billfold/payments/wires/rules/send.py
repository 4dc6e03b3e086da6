"""Sending a wire: booked in full when it is accepted; its message is queued until Fedwire is open.

The rail account holds the money from then on, so that it cannot be short on sending. Later the
message is submitted, the wire completed, or rejected and reversed (`status`).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.accounts.counterparties.rules.verification_kinds import check_payable
from billfold.events import kinds, payloads
from billfold.ledger.book import recording as record
from billfold.ledger.book.draft import to_json
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.directory.types import CustomerStatus
from billfold.ledger.types import AccountKind, Direction, JournalKind, PocketStatus, Rail, TransactionType
from billfold.payments.wires.rules import cut_offs, messages
from billfold.payments.wires.rules.messages import MessageFields
from billfold.payments.wires.types import QueuedMessage, WireDirection, WireRow, WireStatus, WireType
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.withdraw import InsufficientFunds, withdraw

if TYPE_CHECKING:
    from billfold.accounts.counterparties.types import Payee
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import PocketBook
    from billfold.payments.wires.commands import SendWire

WIRE_SEND = "wire.send"
"""The kind of scheduled job that sends queued messages."""


class _WireReference(NamedTuple):
    """The id of a wire, and its reference number."""

    wire_id: UUID
    reference: str


def send_wire(books: Books, cmd: SendWire, ctx: Context) -> Outcome:
    """Book the wire and queue its message. A wire that screening stops is REJECTED and moves nothing.

    Refuses: customer-not-open, pocket-not-open, pocket-frozen, counterparty-type-mismatch,
    counterparty-not-verified, insufficient-funds. NotFound for a pocket
    or counterparty that is not the customer's.

    If the wire was approved before, a refusal raises `wire.rejected` and becomes the outcome.
    """
    book = book_of(books, cmd.customers[0])
    try:
        return _send(book, cmd, ctx)
    except Refused as refusal:
        if not cmd.approved or cmd.wire_id is None:
            raise
        book.undo()
        _raise_event(book, ctx, kinds.WIRE_OUT_REJECTED, wire_id=cmd.wire_id, pocket_id=cmd.pocket_id)
        return {"status": WireStatus.REJECTED, "code": refusal.code}


def _send(book: Book, cmd: SendWire, ctx: Context) -> Outcome:
    pocket = _payable_pocket(book, cmd)
    payee = _payable_counterparty(book, cmd)
    wire_id = cmd.wire_id or ctx.ids.next()
    name = _WireReference(wire_id, cut_offs.reference_of(ctx.seed, wire_id))
    if reason := ctx.terms.screening.stopped_wire(cmd.amount):
        stopped = cmd.amount or 0
        _add_wire(book, pocket, cmd, ctx=ctx, payee=payee, name=name, amount=stopped, reason=reason)
        _raise_event(book, ctx, kinds.WIRE_OUT_REJECTED, wire_id=wire_id, pocket_id=cmd.pocket_id)
        return _outcome(wire_id, WireStatus.REJECTED, reason, amount=stopped)
    international = payee.type == "international_wire"
    send_at = cut_offs.send_time(ctx.now, ctx.calendars, ctx.terms.wire_hours, international=international)
    group = ctx.ids.next_group()
    amount = _book(book, pocket, cmd, ctx=ctx, payee=payee, name=name, group=group, send_at=send_at)
    booked = (group, send_at)
    wire = _add_wire(book, pocket, cmd, ctx=ctx, payee=payee, name=name, amount=amount, booked=booked)
    _queue(book, ctx, payee, wire=wire, send_at=send_at)
    return _outcome(wire_id, WireStatus.PENDING, None, amount=amount)


# -- conditions -----------------------------------------------------------------------


def _payable_pocket(book: Book, cmd: SendWire) -> PocketBook:
    pocket = book.pockets.get(cmd.pocket_id)
    if pocket is None:
        raise NotFound
    if book.account_status != CustomerStatus.OPEN:
        raise Refused("customer-not-open", f"The customer is {book.account_status}.")
    if pocket.status == PocketStatus.FROZEN:
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.")
    if pocket.status != PocketStatus.OPEN:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    return pocket


def _payable_counterparty(book: Book, cmd: SendWire) -> Payee:
    payee: Payee | None = book.referenced.get(cmd.counterparty_id)
    if payee is None:
        raise NotFound("There is no such counterparty.")
    check_payable(payee, Rail.WIRE, unverified_wires=cmd.unverified_wires)
    return payee


# -- booking --------------------------------------------------------------------------


def _book(
    book: Book,
    pocket: PocketBook,
    cmd: SendWire,
    ctx: Context,
    payee: Payee,
    name: _WireReference,
    group: UUID,
    send_at: datetime,
) -> int:
    """Post the payment and its fee; return the cents paid."""
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.PAYMENT, ctx, settles_on=ctx.business_date)
    fee = ctx.terms.wire_fee_cents
    try:
        amount, posting_no = withdraw(
            book,
            pocket,
            ctx,
            amount=cmd.amount,
            price_of=ctx.t0_bid,
            settles_on=ctx.business_date,
            to=book.house_account(AccountKind.RAIL_WIRE),
            fee_reserve=fee,
        )
    except InsufficientFunds:
        raise Refused("insufficient-funds", "The pocket cannot raise the amount and its fees today.") from None
    record.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.WIRE,
        direction=Direction.DEBIT,
        amount=amount,
        title="Wire sent",
        description=cmd.description or f"Wire to {payee.name}",
        settles_at=send_at,
        details={
            "wire_type": WireType.PAYMENT,
            "wire_id": str(name.wire_id),
            "original_wire_id": None,
            "reference_number": name.reference,
            "counterparty_name": payee.name,
            "counterparty_id": str(cmd.counterparty_id),
            "portal_id": None,
        },
        remittance=_remittance(cmd),
    )
    if fee:
        _charge(book, pocket, fee, group=group)
    book.close()
    return amount


def _charge(book: Book, pocket: PocketBook, fee: int, group: UUID) -> None:
    posting_no = book.post(pocket.cash, book.house_account(AccountKind.FEES), fee)
    pocket.fees += fee
    pocket.uninvested = min(pocket.uninvested, pocket.cash.balance)
    record.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        place=2,
        type=TransactionType.FEE,
        direction=Direction.DEBIT,
        amount=fee,
        title="Wire fee",
        description="Fee for a wire",
        settles_at=book.booked_at,
        swept=False,
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


def _add_wire(
    book: Book,
    pocket: PocketBook,
    cmd: SendWire,
    ctx: Context,
    payee: Payee,
    name: _WireReference,
    *,
    amount: int,
    booked: tuple[UUID, datetime] | None = None,
    reason: str | None = None,
) -> WireRow:
    """Record the wire; `booked` is its transaction and when its message is sent."""
    group, send_at = booked or (None, None)
    wire = WireRow(
        customer_id=book.customer_id,
        wire_id=name.wire_id,
        partner_id=pocket.partner_id,
        pocket_id=cmd.pocket_id,
        direction=WireDirection.OUTGOING,
        wire_type=WireType.PAYMENT,
        status=WireStatus.PENDING if booked else WireStatus.REJECTED,
        reason=reason,
        amount=amount,
        fee=ctx.terms.wire_fee_cents if booked else 0,
        counterparty_id=cmd.counterparty_id,
        counterparty_name=payee.name,
        reference_number=name.reference,
        uetr=cut_offs.uetr_of(ctx.seed, name.wire_id),
        description=cmd.description,
        wire_instructions=_instructions(cmd, payee),
        end_to_end_identification=cmd.end_to_end_identification,
        created_by=cmd.created_by,
        request=cmd.request,
        transaction_id=group,
        entry_no=book.entry_no if booked else None,
        send_at=send_at,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    add_wire(book, wire)
    return wire


def add_wire(book: Book, wire: WireRow) -> None:
    """Record a new wire."""
    book.draft.add(wire)
    book.keep_fingerprint(WireRow, wire.wire_id, wire.proof)
    book.enter("wire", str(wire.wire_id), wire.wire_id)


def _queue(book: Book, ctx: Context, payee: Payee, wire: WireRow, send_at: datetime) -> None:
    terms = messages.credit_transfer(
        wire_id=wire.wire_id,
        uetr=wire.uetr,
        amount=wire.amount,
        bank=ctx.terms.routing_number,
        correspondent=ctx.terms.correspondent,
        payer=book.name,
        payee=payee.name,
        details=payee.details,
        international=payee.type == "international_wire",
        description=wire.description,
        instructions=wire.wire_instructions,
        end_to_end=wire.end_to_end_identification,
    )
    queue_message(book, ctx, "pacs.008", wire_id=wire.wire_id, terms=terms, send_at=send_at)


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
    book.keep_fingerprint(QueuedMessage, message.message_id, message.proof)
    book.schedule(WIRE_SEND, message.message_id, send_at)


def _instructions(cmd: SendWire, payee: Payee) -> str | None:
    return cmd.wire_instructions or payee.details.get("wire_instructions")


def _raise_event(
    book: Book, ctx: Context, kind: kinds.EventKind[payloads.WirePayload], wire_id: UUID, pocket_id: UUID
) -> None:
    payload = payloads.WirePayload(wire_id=wire_id, service_account_id=pocket_id)
    record.event(book, ctx, kind, payload=payload)


def _outcome(wire_id: UUID, status: str, reason: str | None, amount: int) -> Outcome:
    return {"wire_id": str(wire_id), "status": status, "reason": reason, "amount": amount}
