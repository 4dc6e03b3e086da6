"""Commands about card money. All reference the card, and the authorization or purchase concerned."""

from collections import Counter
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final
from uuid import UUID, uuid5

import msgspec
from typing_extensions import override

from billfold.ledger.book.book import Book
from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.platform.database.rows import Row
from billfold.platform.dates import et_date

EXPIRY_JOB: Final = "card.hold_expiry"
"""Releases a hold that was not cleared; its object is the authorization."""
LATE_JOB: Final = "card.late"
"""Reverses an approval that came after the processor had its answer; its object is the message."""
PROCESSOR: Final = "card-processor"
"""The sender of card messages, as the caller of commands."""
LATE: Final = "card-processor:late"
"""Reverses a late approval, under the key of the message."""
CHARGEBACK_DAYS: Final = 120
"""Days after its settlement date within which a payment can be charged back."""


class EntryMode(StrEnum):
    """The way in which the card was presented."""

    CHIP = "CHIP"
    CONTACTLESS = "CONTACTLESS"
    MAGSTRIPE = "MAGSTRIPE"
    KEYED = "KEYED"
    ECOMMERCE = "ECOMMERCE"
    RECURRING = "RECURRING"
    ATM = "ATM"


class Decision(StrEnum):
    """The bank's answer to the card processor."""

    APPROVED = "APPROVED"
    PARTIALLY_APPROVED = "PARTIALLY_APPROVED"
    DECLINED = "DECLINED"


class DeclineReason(StrEnum):
    """The reason for a decline. TIMED_OUT: the bank decided too late, and reversed any approval."""

    AGREEMENT_NOT_ACCEPTED = "AGREEMENT_NOT_ACCEPTED"
    CARD_CLOSED = "CARD_CLOSED"
    CARD_EXPIRED = "CARD_EXPIRED"
    CARD_FROZEN = "CARD_FROZEN"
    CARD_LIMIT = "CARD_LIMIT"
    CARD_NOT_ACTIVATED = "CARD_NOT_ACTIVATED"
    CARD_NOT_FOUND = "CARD_NOT_FOUND"
    CARD_OFFLINE = "CARD_OFFLINE"
    CATEGORY_BLOCKED = "CATEGORY_BLOCKED"
    CATEGORY_LIMIT = "CATEGORY_LIMIT"
    CUSTOMER_NOT_OPEN = "CUSTOMER_NOT_OPEN"
    DUPLICATE = "DUPLICATE"
    INSUFFICIENT_FUNDS = "INSUFFICIENT_FUNDS"
    MAGSTRIPE_OFF = "MAGSTRIPE_OFF"
    NO_AUTHORIZATION = "NO_AUTHORIZATION"
    POCKET_FROZEN = "POCKET_FROZEN"
    POCKET_NOT_OPEN = "POCKET_NOT_OPEN"
    SUSPECTED_FRAUD = "SUSPECTED_FRAUD"
    TIMED_OUT = "TIMED_OUT"
    UNAVAILABLE = "UNAVAILABLE"


class AuthorizationStatus(StrEnum):
    """PENDING while cash is held. A later clearing still posts: then it is CLEARED."""

    PENDING = "PENDING"
    CLEARED = "CLEARED"
    REVERSED = "REVERSED"
    EXPIRED = "EXPIRED"
    DECLINED = "DECLINED"


class CardPaymentKind(StrEnum):
    """The movement of a record in the processor's settlement."""

    PURCHASE = "PURCHASE"
    REFUND = "REFUND"
    CHARGEBACK = "CHARGEBACK"
    REPRESENTMENT = "REPRESENTMENT"


Text = Annotated[str, msgspec.Meta(max_length=100)]
CategoryCode = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}\Z", max_length=4)]
NetworkReference = Annotated[str, msgspec.Meta(min_length=1, max_length=40, pattern=r"^[!-~]+\Z")]
"""The reference that all messages of a purchase share."""


class Merchant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The merchant. `category_code` is that of ISO 18245, `country` and `state` are codes or null."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"\S")]
    category_code: CategoryCode
    street_address: Text | None = None
    city: Text | None = None
    state: Annotated[str, msgspec.Meta(max_length=3)] | None = None
    country: Annotated[str, msgspec.Meta(max_length=3)] | None = None
    terminal_id: Annotated[str, msgspec.Meta(max_length=16)] | None = None
    acquirer_id: Annotated[str, msgspec.Meta(max_length=16)] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for texts that are not one printable line, because some databases cannot hold them."""
        if not "".join(filter(None, msgspec.structs.astuple(self))).isprintable():
            raise ValueError("must be printable characters on one line")


class AuthorizationRow(Row, frozen=True, kw_only=True):
    """The authorization of a purchase. Amounts are cents; `merchant` is JSON text.

    `remaining` is the cash held now; `hold_entry_no` is the journal entry that reserved it, and the `places`-th
    member of `transaction_id` its transaction. `authorized_on` is the Eastern day on which it was last raised: limits
    count the excess over `spent_before` on that day.
    """

    table = "card_authorization"
    key_column = "authorization_id"
    noun = "authorization"
    fingerprinted = True
    keeps_former = ("hold_entry_no",)

    customer_id: UUID
    authorization_id: UUID
    card_id: UUID
    pocket_id: UUID
    network_reference: str
    status: AuthorizationStatus
    reason: DeclineReason | None = None
    approved: int = 0
    reversed: int = 0
    cleared: int = 0
    remaining: int = 0
    entry_mode: EntryMode | None
    is_preauthorization: bool
    category_code: str
    merchant: str
    authorized_on: date
    spent_before: int = 0
    expires_at: datetime
    transaction_id: UUID
    places: int = 0
    hold_entry_no: int | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def spent(self) -> int:
        """Cents spent, or still held to be spent."""
        return max(self.approved - self.reversed, self.cleared)

    @property
    def spent_that_day(self) -> int:
        """Cents that the limits of the card count on the day on which it was last raised."""
        return max(self.spent - self.spent_before, 0)


class CardPaymentRow(Row, frozen=True, kw_only=True):
    """A payment from a record of the processor's settlement, in cents.

    `original_id` is the purchase of a chargeback or representment; `disputed` is the part of a purchase charged back.
    """

    table = "card_payment"
    key_column = "record_id"
    fingerprinted = True

    customer_id: UUID
    record_id: UUID
    kind: CardPaymentKind
    card_id: UUID
    pocket_id: UUID
    authorization_id: UUID | None = None
    original_id: UUID | None = None
    amount: int
    disputed: int = 0
    interchange: int = 0
    merchant: str
    settles_on: date
    entry_no: int
    transaction_id: UUID
    created_at: datetime
    updated_at: datetime


class CardLimitsRow(Row, frozen=True, kw_only=True):
    """Daily limits of a card, in cents: in total, and by merchant category (JSON text). Zero blocks."""

    table = "card_limits"
    key_column = "card_id"
    fingerprinted = True
    keeps_former = True

    customer_id: UUID
    card_id: UUID
    daily: int | None
    categories: str
    created_at: datetime
    updated_at: datetime


class LateMessageRow(Row, frozen=True, kw_only=True):
    """A message of the processor, as JSON text, that was declined because it was not decided in time."""

    table = "card_late_message"
    key_column = "message_id"

    message_id: UUID
    customer_id: UUID
    message: str


class CardSpending(msgspec.Struct, frozen=True):
    """The limits of a card, and its spending by merchant category on the day of its last use."""

    limits: CardLimitsRow | None
    day: date | None
    spent: dict[str, int]


def authorization_id_of(card_id: UUID, network_reference: str) -> UUID:
    """Return the id of the authorization of a purchase, whose messages all have the same reference."""
    return uuid5(card_id, network_reference)


def spending_id_of(card_id: UUID) -> UUID:
    """Return the id under which rules find the limits of a card."""
    return uuid5(card_id, "limits")


def day_id_of(card_id: UUID) -> UUID:
    """Return the id under which rules find the authorizations of the day on which a card was last used."""
    return uuid5(card_id, "day")


_SEEN: tuple[Reference, ...] = (Reference.CARD_AUTHORIZATION,)


def references_of(card_id: UUID, network_reference: str | None = None, *others: UUID) -> tuple[UUID, ...]:
    """Return the references of a command about a card: itself, its limits, and the authorization of a purchase."""
    own = () if network_reference is None else (authorization_id_of(card_id, network_reference),)
    return (card_id, spending_id_of(card_id), *own, *others)


class CardMessage(Command, frozen=True, kw_only=True):
    """A message of the card processor about one purchase; its key is the id of the message."""

    reference_kinds = _SEEN
    card_id: UUID
    network_reference: str
    merchant: Merchant
    entry_mode: EntryMode | None = None
    is_preauthorization: bool = False


class CardRequest(CardMessage, frozen=True, kw_only=True):
    """A request for an amount in cents, `cash` of it as cash; the flags state what the terminal can do with less."""

    amount: int
    cash: int = 0
    is_partial_allowed: bool = False
    is_purchase_only_allowed: bool = False


class AuthorizeCard(CardRequest, frozen=True, kw_only=True):
    """Decide about a purchase of this amount; an advice has already been decided by others."""

    is_advice: bool = False


class IncrementAuthorization(CardRequest, frozen=True, kw_only=True):
    """Decide about an additional amount for a purchase that is held."""


class ReverseAuthorization(CardMessage, frozen=True, kw_only=True):
    """Release an amount of a hold; None: all. `is_late`: the bank's own approval, held by an entry, came too late."""

    amount: int | None = None
    is_late: bool = False
    hold_entry_no: int | None = None


class ExpireAuthorization(CardMessage, frozen=True, kw_only=True):
    """Release a hold that expires by `due`."""

    due: datetime


class InquireBalance(Command, frozen=True, kw_only=True):
    """Return the amount that a card could pay now."""

    reference_kinds = (Reference.CARD,)
    is_recorded = False

    card_id: UUID
    entry_mode: EntryMode | None = None


class CardRecord(Command, frozen=True, kw_only=True):
    """A record of the processor's settlement. `amount` and the bank's earnings from it are cents."""

    reference_kinds = _SEEN
    record_id: UUID
    card_id: UUID
    amount: int
    settles_on: date
    network_reference: str | None = None
    interchange_cents: int = 0
    entry_mode: EntryMode | None = None
    is_preauthorization: bool = False


class ClearCard(CardRecord, frozen=True, kw_only=True):
    """Debit a purchase. After the final record nothing more is held for it."""

    merchant: Merchant
    is_final: bool = True


_OF_DISPUTES = (*_SEEN, Reference.CARD_DISPUTE)


class RefundCard(CardRecord, frozen=True, kw_only=True):
    """Credit a merchant's refund."""

    reference_kinds = _OF_DISPUTES

    merchant: Merchant


class ChargeBack(CardRecord, frozen=True, kw_only=True):
    """Credit a disputed purchase. Also references the purchase."""

    reference_kinds = _OF_DISPUTES

    original_id: UUID


class Represent(CardRecord, frozen=True, kw_only=True):
    """Reverse a chargeback. Also references the purchase."""

    reference_kinds = _OF_DISPUTES

    original_id: UUID


class SetCardLimits(Command, frozen=True, kw_only=True):
    """Set the daily limits of a card, in cents: in total (None: no limit), and by merchant category."""

    reference_kinds = (*_SEEN, Reference.CARD_DAY)
    audit = AuditedAction("card", "limited", fields=("daily", "categories"))
    card_id: UUID
    daily: int | None
    categories: dict[str, int]

    @property
    def limits(self) -> dict[str | None, int]:
        """The limits by merchant category; None: in total."""
        total: dict[str | None, int] = {} if self.daily is None else {None: self.daily}
        return total | self.categories

    def meets(self, book: Book, now: datetime) -> tuple[dict[str | None, int], list[AuthorizationRow]]:
        """Return what is spent of each limit today, and the open authorizations that are over one."""
        known = (*book.referenced.get(day_id_of(self.card_id), ()), *book.referenced.values())
        rows = {
            row.authorization_id: row  # the last is as the commands before this one left it
            for row in known
            if isinstance(row, AuthorizationRow) and (row.card_id, row.authorized_on) == (self.card_id, et_date(now))
        }.values()
        limits, spent = self.limits, Counter[str | None]()
        for row in rows:
            spent.update({None: row.spent_that_day, row.category_code: row.spent_that_day})
        exceeded = {category for category, cents in limits.items() if spent[category] > cents}
        held = (row for row in rows if row.status == AuthorizationStatus.PENDING)
        over = [row for row in held if not exceeded.isdisjoint((None, row.category_code))]
        over.sort(key=lambda row: (row.created_at, row.authorization_id))
        return {each: spent[each] for each in limits}, over

    @override
    def bound(self, book: Book, now: datetime) -> tuple[str, ...]:
        """Return what a preview shows of today."""
        spent, over = self.meets(book, now)
        return str(spent), *(f"{row.authorization_id} {row.remaining}" for row in over)
