"""Deposits: the rail credits the pocket's bank account, the sweep moves it to cash, cash is invested."""

from datetime import datetime, time
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules.verification import verify_by_wire
from billfold.accounts.counterparties.rules.verification_kinds import Account
from billfold.accounts.pockets.rules import place_hold
from billfold.accounts.portals.commands import PortalRow, PortalStatus
from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import NOT_CLOSED, AccountKind, Direction, JournalKind, Rail, TransactionType
from billfold.payments.wires.commands import IncomingWireFields, WireDirection, WireRow, WireStatus, WireType
from billfold.payments.wires.iso20022.types import CreditTransfer
from billfold.payments.wires.rules import messages
from billfold.payments.wires.rules.recording import add_wire, queue_message, raise_wire_event, send_time
from billfold.platform.dates import et_instant
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.sweep import sweep_and_invest


class IncomingWire(msgspec.Struct, frozen=True, kw_only=True):
    """A wire to this bank, with its message. `routing_number` is that of the receiving bank."""

    wire_id: UUID
    routing_number: str
    account_number: str
    amount: int
    sender_name: str
    reference_number: str
    description: str = ""
    sender_account_number: str | None = None
    sender_routing_number: str | None = None
    omad: str | None = None
    message: CreditTransfer


class IncomingAch(msgspec.Struct, frozen=True, kw_only=True):
    """One credit entry of an incoming ACH file. Field names and lengths are those of NACHA."""

    ach_id: UUID
    routing_number: str
    account_number: str
    amount: int
    company_name: str
    company_entry_description: str
    individual_identification_number: str
    trace_number: str


IncomingPayment = IncomingWire | IncomingAch


class ReceiveMoney(Command, frozen=True, kw_only=True):
    """Credit a payment that a rail delivered to a portal. `amount` in cents; `details` per rail.

    `wire` is set for a wire that came in a Fedwire message; the key is then the wire's id.
    """

    needs_identifiers = True

    rail: Rail
    portal_id: UUID
    pocket_id: UUID
    amount: int
    description: str
    details: dict[str, Any]
    remittance: dict[str, Any] | None = None
    wire: IncomingWireFields | None = None
    sender: Account | None = None
    """The account that sent the wire, if the sending bank names it."""


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


ACH_SETTLES_AFTER = 2
"""Banking days until an incoming ACH entry is final (contract 9)."""


@decides(ReceiveMoney)
def receive_money(books: Books, cmd: ReceiveMoney, ctx: Context) -> Outcome:
    """Post a deposit and invest it, or reject it so that the rail returns it."""
    book = book_of(books, cmd.customers[0])
    portal = book.portals.get(cmd.portal_id)
    pocket = book.pockets.get(cmd.pocket_id)
    recorded = {} if cmd.wire is None else {"wire_id": str(cmd.key)}
    if portal is None or pocket is None or not is_accepted(portal, pocket, cmd.rail):
        _raise_event(book, ctx, cmd, taken=False)
        if pocket is not None:
            record_incoming_wire(book, ctx, cmd, pocket=pocket)
        return {"status": "REJECTED", "reason": "ACCOUNT_UNAVAILABLE", **recorded}
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.DEPOSIT, ctx, settles_on=ctx.settles_on)
    posting_no = book.post(book.internal_account(AccountKind.of_rail(cmd.rail)), pocket.bank, cmd.amount)
    sweep_and_invest(book, pocket, ctx, amount=cmd.amount)
    group = ctx.ids.next_group()
    details: dict[str, Any] = {**cmd.details, "portal_id": str(cmd.portal_id)}
    moves: list[Any] = []
    known_as: UUID | None = None
    if cmd.sender is not None:
        known_as, moves = verify_by_wire(book, ctx, cmd.sender, name=cmd.details.get("counterparty_name") or "")
        details["counterparty_id"] = known_as
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=_TYPE[cmd.rail],
        direction=Direction.CREDIT,
        amount=cmd.amount,
        title=_TITLE[cmd.rail],
        description=cmd.description,
        settles_at=ach_settles_at(ctx) if cmd.rail == Rail.ACH else book.booked_at,
        details=details,
        remittance=cmd.remittance,
    )
    book.close()
    record_incoming_wire(book, ctx, cmd, pocket=pocket, group=group, counterparty_id=known_as)
    if cmd.rail == Rail.ACH:
        hold_ach_credit(book, pocket, ctx, amount=cmd.amount)
    _raise_event(book, ctx, cmd, taken=True)
    outcome = {"status": "COMPLETED", "transaction_id": str(group), **recorded}
    return outcome | {"counterparties": moves} if moves else outcome


def is_accepted(portal: PortalRow, pocket: PocketBook, rail: Rail) -> bool:
    """Return whether a portal accepts payments of a rail now."""
    return portal.status == PortalStatus.OPEN and rail in portal.payment_rails and pocket.status in NOT_CLOSED


_TITLE = {Rail.WIRE: "Wire received", Rail.ACH: "ACH credit", Rail.CRYPTO: "Crypto deposit"}
_TYPE = {
    Rail.WIRE: TransactionType.WIRE,
    Rail.ACH: TransactionType.ACH,
    # The API has no specific type for it.
    Rail.CRYPTO: TransactionType.GENERIC,
}


def _raise_event(book: Book, ctx: Context, cmd: ReceiveMoney, *, taken: bool) -> None:
    """Raise the event of a payment. Its id is the command's key; a deposit on a chain has its own id."""
    if cmd.rail == Rail.WIRE:
        kind = kinds.WIRE_IN_SUCCESS if taken else kinds.WIRE_IN_REJECTED
        raise_wire_event(book, ctx, kind, wire_id=cmd.key, pocket_id=cmd.pocket_id)
    elif cmd.rail == Rail.CRYPTO:
        if taken:
            deposit_id = UUID(cmd.details["crypto_transfer_id"])
            crypto = kinds.CryptoPayload(service_account_id=cmd.pocket_id, crypto_transfer_id=deposit_id)
            recording.event(book, ctx, kinds.CRYPTO_IN_SUCCESS, payload=crypto)
    else:
        ach = kinds.AchPayload(service_account_id=cmd.pocket_id, ach_id=cmd.key)
        how_ach = kinds.ACH_IN_SUCCESS if taken else kinds.ACH_IN_REJECTED
        recording.event(book, ctx, how_ach, payload=ach)


def ach_settles_at(ctx: Context) -> datetime:
    """Return when an ACH entry received now is final."""
    day = ctx.calendars.add_fed_days(ctx.business_date, ACH_SETTLES_AFTER)
    return et_instant(day, time(8, 30))


def hold_ach_credit(book: Book, pocket: PocketBook, ctx: Context, amount: int) -> None:
    """Hold money until its return window ends."""
    if not ctx.terms.ach_credit_hold_days:
        return
    day = ctx.calendars.add_fed_days(ctx.business_date, ctx.terms.ach_credit_hold_days)
    until = et_instant(day, time(8, 30))
    place_hold(book, pocket, hold_id=ctx.ids.next(), amount=amount, until=until, cause=TransactionType.ACH)
