"""Suspense: money that cannot be booked is held, then returned or assigned to its owner.

It is posted to the bank's account `suspense` against the account of its rail. A DEBIT is money that
a rail took from the bank for an unknown account. A refunded fee is held with it, paid from
`promotions`.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import to_json
from billfold.ledger.book.postings import Fingerprint
from billfold.ledger.commands import AuditedAction, Books, Command, Outcome, Reference, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, JournalKind, Rail
from billfold.payments.adjustments.rules import PostGoodwillCredit, post_goodwill_credit
from billfold.payments.deposits.rules import ReceiveMoney, receive_money
from billfold.payments.wires.iso20022.types import CreditTransfer, PaymentReturn
from billfold.payments.wires.rules import recording
from billfold.platform.database.rows import Row
from billfold.platform.errors import NotFound, Refused


class SuspenseStatus(StrEnum):
    """The status of an item."""

    HELD = "HELD"
    RETURNED = "RETURNED"
    ASSIGNED = "ASSIGNED"
    WRITTEN_OFF = "WRITTEN_OFF"


NOT_RETURNABLE = "stays"
"""The detail of an item that cannot be returned: the reason, and what to do instead."""

FEE = "fee"
"""The detail of an item that includes a fee, in cents: the bank refunds it with the rest."""


class SuspenseItem(Row, frozen=True, kw_only=True):
    """An item as stored: `amount` in cents including the fee; `details` JSON text of its rail's fields.

    `entry_no` and `ended_entry_no` are journal entries of the bank, whose id is `customer_id`.
    """

    table = "suspense_item"
    key_column = "item_id"
    fingerprinted = True

    customer_id: UUID
    item_id: UUID
    rail: Rail
    direction: Direction
    amount: int
    status: SuspenseStatus
    reason: str
    details: str
    entry_no: int
    created_at: datetime
    ended_at: datetime | None = None
    ended_entry_no: int | None = None
    return_reason: str | None = None
    owner_id: UUID | None = None

    @property
    @override
    def lasting(self) -> tuple[object, ...]:
        return (self.details,)


class HoldInSuspense(Command, frozen=True, kw_only=True):
    """Hold a payment in suspense. `amount` in cents; `details` has the fields of its rail.

    A fee in `details` is part of the amount and is paid by the bank. `settles_on` is the settlement
    date of the rail; None is today.
    """

    needs_identifiers = True

    item_id: UUID
    rail: Rail
    direction: Direction
    amount: int
    reason: str
    details: dict[str, Any]
    settles_on: date | None = None


class ReturnFromSuspense(Command, frozen=True, kw_only=True):
    """Return an item by its rail: under `reason`, or `by_hand` if no message of ours can."""

    needs_identifiers = True
    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "returned", fields=("item_id", "reason", "by_hand"))

    item_id: UUID
    reason: str
    settles_on: date | None = None
    by_hand: bool = False


class AssignFromSuspense(Command, frozen=True, kw_only=True):
    """Assign an item to a portal of its owner. `customers` are the bank and the owner.

    `details` are those of the item, sealed for the owner; None: unchanged.
    """

    needs_identifiers = True
    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "assigned", fields=("item_id", "portal_id"))

    item_id: UUID
    portal_id: UUID
    pocket_id: UUID
    details: dict[str, Any] | None = None


class ReleaseFromSuspense(Command, frozen=True, kw_only=True):
    """Post an item back to its rail: it is booked to its owner by a command of its rail."""

    needs_identifiers = True
    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "assigned", fields=("item_id", "owner_id"))

    item_id: UUID
    owner_id: UUID
    settles_on: date


class WriteOffFromSuspense(Command, frozen=True, kw_only=True):
    """Post an item of the card rail, or a debit, to `losses`: it has no owner and cannot be returned."""

    needs_identifiers = True
    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "written_off", fields=("item_id", "reason"))

    item_id: UUID
    reason: str


RECORDED = ("rail", "direction", "amount", "reason")
"""The columns of an item that the outcome of its command repeats."""


@decides(HoldInSuspense)
def hold_in_suspense(books: Books, cmd: HoldInSuspense, ctx: Context) -> Outcome:
    """Post the item from its rail to suspense."""
    book = book_of(books, cmd.customers[0])
    item = SuspenseItem(
        customer_id=book.customer_id,
        item_id=cmd.item_id,
        rail=cmd.rail,
        direction=cmd.direction,
        amount=cmd.amount,
        status=SuspenseStatus.HELD,
        reason=cmd.reason,
        details=to_json(cmd.details),
        entry_no=0,
        created_at=ctx.now,
    )
    item = msgspec.structs.replace(item, entry_no=_post_item(book, ctx, item, settles_on=cmd.settles_on))
    book.draft.add(item)
    book.keep_fingerprint(item)
    book.put(book.referenced, item.item_id, item)
    recorded = {name: getattr(item, name) for name in ("status", *RECORDED)}
    return {**recorded, "item_id": str(cmd.item_id), "journal_no": item.entry_no}


@decides(ReturnFromSuspense)
def return_from_suspense(books: Books, cmd: ReturnFromSuspense, ctx: Context) -> Outcome:
    """Post the item from suspense to its rail, which sends the return unless operators have sent it by hand.

    Refuses: suspense-item-settled, suspense-item-stays if no message can return it, suspense-item-returnable if
    one can but it is to be returned by hand.
    """
    book = book_of(books, cmd.customers[0])
    item = _held_item(book, cmd.item_id)
    stays = _details(item).get(NOT_RETURNABLE)
    if stays is not None and (item.rail == Rail.CARD or not cmd.by_hand):
        raise Refused("suspense-item-stays", stays)
    if stays is None and cmd.by_hand:
        raise Refused("suspense-item-returnable", "A message returns it. Return it without --by-hand.")
    entry_no = _post_item(book, ctx, item, settles_on=cmd.settles_on, released=True)
    if not cmd.by_hand:
        book.schedule(f"{item.rail.lower()}.suspense_return", item.item_id, ctx.now)
    return _close_item(book, ctx, item, status=SuspenseStatus.RETURNED, entry_no=entry_no, return_reason=cmd.reason)


@decides(AssignFromSuspense)
def assign_from_suspense(books: Books, cmd: AssignFromSuspense, ctx: Context) -> Outcome:
    """Book the item to a portal of its owner.

    Refuses: suspense-item-settled, suspense-item-stays for a debit or a card item, no-open-portal.
    """
    book, owner = book_of(books, cmd.customers[0]), book_of(books, cmd.customers[1])
    item = _held_item(book, cmd.item_id)
    if item.rail == Rail.CARD:
        raise Refused("suspense-item-stays", str(_details(item)[NOT_RETURNABLE]))
    if item.direction != Direction.CREDIT:
        raise Refused("suspense-item-stays", "A debit cannot be assigned. Return it, or write it off.")
    details = cmd.details or _details(item)
    entry_no, fee = _post_item(book, ctx, item, released=True), _details(item).get(FEE, 0)
    arrived = receive_money(
        {owner.customer_id: owner},
        ReceiveMoney(
            caller=cmd.caller,
            key=item.item_id,
            customers=(owner.customer_id,),
            rail=item.rail,
            portal_id=cmd.portal_id,
            pocket_id=cmd.pocket_id,
            amount=item.amount - fee,
            description=str(details.get("description") or item.reason),
            **_original_payment(item, details, owner.customer_id),
        ),
        ctx,
    )
    if arrived["status"] != "COMPLETED":
        raise Refused("no-open-portal", "The portal is closed or does not accept this rail.")
    if fee:
        _return_fee(owner, cmd, ctx, fee=fee)
    # The command row belongs to the bank, and so does its outcome about the wire.
    for fingerprint in owner.draft.take(Fingerprint):
        book.draft.add(fingerprint)
    ended = _close_item(book, ctx, item, status=SuspenseStatus.ASSIGNED, entry_no=entry_no, owner_id=owner.customer_id)
    return ended | {name: arrived[name] for name in _DEPOSIT_FIELDS if name in arrived}


@decides(ReleaseFromSuspense)
def release_from_suspense(books: Books, cmd: ReleaseFromSuspense, ctx: Context) -> Outcome:
    """Post the item to its rail once it is booked to its owner. Refuses: suspense-item-settled."""
    book = book_of(books, cmd.customers[0])
    item = _held_item(book, cmd.item_id)
    entry_no = _post_item(book, ctx, item, settles_on=cmd.settles_on, released=True)
    return _close_item(book, ctx, item, status=SuspenseStatus.ASSIGNED, entry_no=entry_no, owner_id=cmd.owner_id)


@decides(WriteOffFromSuspense)
def write_off_from_suspense(books: Books, cmd: WriteOffFromSuspense, ctx: Context) -> Outcome:
    """Post the item to `losses`. Refuses: suspense-item-settled, suspense-item-stays if it is somebody's money."""
    book = book_of(books, cmd.customers[0])
    item = _held_item(book, cmd.item_id)
    if item.rail != Rail.CARD and item.direction != Direction.DEBIT:
        raise Refused("suspense-item-stays", "It is somebody's money. Return it, or assign it.")
    entry_no = book.begin(JournalKind.SUSPENSE, ctx, settles_on=ctx.business_date, business_date=book.business_date)
    sides = book.internal_account(AccountKind.LOSSES), book.internal_account(AccountKind.SUSPENSE)
    book.post(*(sides if item.direction == Direction.DEBIT else sides[::-1]), item.amount)
    book.close()
    written_off = SuspenseStatus.WRITTEN_OFF
    return _close_item(book, ctx, item, status=written_off, entry_no=entry_no, return_reason=cmd.reason)


def _return_fee(owner: Book, cmd: AssignFromSuspense, ctx: Context, fee: int) -> None:
    post_goodwill_credit(
        {owner.customer_id: owner},
        PostGoodwillCredit(
            caller=cmd.caller,
            key=cmd.item_id,
            customers=(owner.customer_id,),
            pocket_id=cmd.pocket_id,
            amount=fee,
            credit_type="ADJUSTMENT",
            description="Fee of a wire that was rejected",
        ),
        ctx,
    )


_DEPOSIT_FIELDS = ("transaction_id", "wire_id")


def _original_payment(item: SuspenseItem, details: dict[str, Any], owner: UUID) -> dict[str, Any]:
    """Return the fields of `ReceiveMoney`; those of a wire come from its message."""
    if item.rail != Rail.WIRE or "message" not in details:
        shown = details.get("details") or {name: details[name] for name in _ACH_DETAILS if name in details}
        return {"details": shown}
    message, stored = msgspec.convert(details["message"], CreditTransfer | PaymentReturn), to_json(details["message"])
    if isinstance(message, PaymentReturn):
        own = details.get("customer_id") == str(owner)
        original = UUID(details["original_wire_id"]) if own else None
        wire = recording.returned_wire_of(message, details.get("omad"), original)
        wire = msgspec.structs.replace(wire, message=stored if own else None)
        return {"wire": wire, "details": recording.details_of(wire, item.item_id)}
    wire = recording.incoming_wire_of(message, details.get("omad"))
    return {
        "wire": msgspec.structs.replace(wire, message=stored, instructions=details.get("instructions")),
        "details": recording.details_of(wire, item.item_id),
        "remittance": recording.remittance_of(message, details.get("remittance"), details.get("documents")),
    }


_ACH_DETAILS = (
    "company_name",
    "company_entry_description",
    "individual_identification_number",
    "trace_number",
    "ach_direction",
)


def _details(item: SuspenseItem) -> dict[str, Any]:
    return msgspec.json.decode(item.details, type=dict[str, Any])


def _held_item(book: Book, item_id: UUID) -> SuspenseItem:
    item = book.referenced.get(item_id)
    if not isinstance(item, SuspenseItem):
        raise NotFound
    if item.status != SuspenseStatus.HELD:
        raise Refused("suspense-item-settled", f"The item is {item.status} already.")
    return item


def _post_item(
    book: Book, ctx: Context, item: SuspenseItem, *, settles_on: date | None = None, released: bool = False
) -> int:
    """Post an item from its rail to suspense, or back on release; return the journal entry.

    It is booked on the bank's open business date: only the day end moves on to the next.
    """
    settles_on = settles_on or ctx.business_date
    entry_no = book.begin(JournalKind.SUSPENSE, ctx, settles_on=settles_on, business_date=book.business_date)
    rail, suspense = book.internal_account(AccountKind.of_rail(item.rail)), book.internal_account(AccountKind.SUSPENSE)
    fee = _details(item).get(FEE, 0)
    if (item.direction == Direction.CREDIT) == released:
        book.post(suspense, rail, item.amount - fee)
    else:
        book.post(rail, suspense, item.amount - fee)
    if fee:
        sides = (book.internal_account(AccountKind.PROMOTIONS), suspense)
        book.post(*(sides[::-1] if released else sides), fee)
    book.close()
    return entry_no


def _close_item(
    book: Book, ctx: Context, item: SuspenseItem, status: SuspenseStatus, entry_no: int, **columns: object
) -> Outcome:
    book.change(SuspenseItem, item.item_id, status=status, ended_entry_no=entry_no, ended_at=ctx.now, **columns)
    book.put(book.referenced, item.item_id, msgspec.structs.replace(item, status=status))
    changed = {name: value if value is None else str(value) for name, value in columns.items()}
    return {"item_id": str(item.item_id), "status": status, "journal_no": entry_no, **changed}
