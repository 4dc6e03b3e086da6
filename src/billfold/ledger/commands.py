"""Commands, and how their rules refuse them.

A command is a frozen struct. A rule is a plain function `rule(books, command, ctx)` that
changes books and returns the outcome, a JSON-ready dict from which the answer is rendered.
A rule that refuses raises `Refused`; a book that is not loaded raises `Missing`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.book.notes import Note, attach_note
from billfold.ledger.book.postings import CommandEntry, Fingerprint
from billfold.ledger.context import Context
from billfold.ledger.effects import effect_of
from billfold.ledger.types import Origin
from billfold.platform.database.rows import stored_name
from billfold.platform.errors import InvariantError, Refused
from billfold.platform.ids import command_id

Outcome = dict[str, Any]
Books = Mapping[UUID, "Book"]
Rule = Callable[..., Outcome]
"""`rule(books, command, ctx)`. The parameters are left open: decoding a command from JSON resolves this type."""


class Reference(StrEnum):
    """A resource that a rule may use in addition to the books of its customers."""

    ACH_ENTRY = "ach_entry"
    CARD = "card"
    CARD_AUTHORIZATION = "card_authorization"
    CARD_DAY = "card_day"
    CARD_DISPUTE = "card_dispute"
    COUNTERPARTY = "counterparty"
    CUSTOMER_PROFILE = "customer_profile"
    CRYPTO_WITHDRAWAL = "crypto_withdrawal"
    CRYPTO_DEPOSIT = "crypto_deposit"
    DEALER_ORDER = "dealer_order"
    DOCUMENT = "document"
    EXECUTION = "execution"
    HOLD = "hold"
    NOTE = "note"
    ON_US_TRANSFER = "on_us_transfer"
    OPEN_ACH_ENTRIES = "open_ach_entries"
    OPEN_DISPUTES = "open_disputes"
    OPEN_WIRES = "open_wires"
    OPEN_WITHDRAWALS = "open_withdrawals"
    RECONCILED_DAY = "reconciled_day"
    RECONCILIATION_BREAK = "reconciliation_break"
    SANCTIONS_HIT = "sanctions_hit"
    SECURITY_TRANSFER = "security_transfer"
    SETTLEMENT_DIFFERENCE = "settlement_difference"
    SETTLEMENT_INSTRUCTION = "settlement_instruction"
    SUSPENSE_ITEM = "suspense_item"
    TRADING_DESK = "trading_desk"
    TRANSACTION = "transaction"
    WIRE = "wire"


class Seen(NamedTuple):
    """References of a command that were read before it, with the ends of its customers' chains and the clock.

    The objects are valid while the chain of the first customer ends there.
    """

    chains: Mapping[UUID, bytes]
    objects: Mapping[UUID, Any]
    clock: Any
    """A `ClockState`, which rules cannot read; None if the bank runs on wall time."""


class AuditedAction(NamedTuple):
    """The audit entry of a command: `fields` are the fields of the command that it shows.

    `key` is the name of the resource's id in the outcome or the command, by default that of the resource with `_id`.
    """

    resource: str
    verb: str | Callable[[Any], str]
    fields: tuple[str, ...] = ()
    key: str = ""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all commands: caller, idempotency key, customers.

    `customers[0]` owns the command row. `request_hash` is the fingerprint of the request;
    the same (caller, key) with another fingerprint is refused. `origin` is the user or client,
    for the audit log; it decides nothing. `references` are ids of other objects the rule needs:
    it finds them in `Book.referenced`. All of them may have been `seen`.
    `attached` is the note for the object of the command; `noted` is that object if it exists. `expected` is the
    effect without which it is refused.
    """

    rule: ClassVar[Rule]
    # How the objects behind `references` are read.
    reference_kinds: ClassVar[tuple[Reference, ...]] = ()
    # The audit entry of a command that a user or client requested. Payments and ends of days are
    # proven by their own rows and the chain of the ledger.
    audit: ClassVar[AuditedAction | None] = None
    # Does the rule use portals, counterparties or pending transfers?
    needs_identifiers: ClassVar[bool] = False
    creates_customer: ClassVar[bool] = False
    # Does it leave a command row? The row has the name of its class, so that earlier ones stay readable.
    is_recorded: ClassVar[bool] = True
    former_names: ClassVar[tuple[str, ...]] = ()
    # The kind of the object to which a note is attached, and the name of its id in the outcome.
    notes_on: ClassVar[tuple[str, str]] = ("", "")

    caller: str
    key: UUID
    customers: tuple[UUID, ...]
    request_hash: bytes = b""
    origin: Origin | None = None
    references: tuple[UUID, ...] = ()
    seen: Seen | None = None
    attached: Note | None = None
    noted: UUID | None = None
    expected: bytes | None = None

    @property
    def command_id(self) -> UUID:
        """The id of this command, derived from caller and key."""
        return command_id(self.caller, self.key)

    @property
    def reads(self) -> tuple[Reference, ...]:
        """The kinds of its references."""
        return self.reference_kinds

    @property
    def noting(self) -> tuple["Command", ...]:
        """The commands that attach a note: itself, or its parts."""
        return () if self.attached is None else (self,)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the class names that its rows have in the database."""
        return (cls.__name__, *cls.former_names)

    def decide(self, books: Books, ctx: Context) -> Outcome:
        """Apply the rule to these books, and attach the note to its object. Refuses: preview-outdated."""
        book = book_of(books, self.customers[0]) if self.expected is not None else None
        before = {} if book is None else book.draft.lengths()
        outcome = type(self).rule(books, self, ctx)
        if book is not None and effect_of(book.draft, before, outcome, self.bound(book, ctx.now)) != self.expected:
            raise Refused(
                "preview-outdated", "The preview is older than a minute, or the request would now do something else."
            )
        if self.attached is not None:
            kind, name = self.notes_on
            attach_note(book_of(books, self.customers[0]), kind, UUID(outcome[name]), note=self.attached, ctx=ctx)
        return outcome

    def bound(self, book: Book, now: datetime) -> tuple[str, ...]:  # noqa: ARG002 - of those that bind nothing
        """Return what must be as in a preview, besides the effect on the book of the first customer."""
        return ()

    def decided(self, outcome: Outcome) -> Sequence[tuple["Command", Outcome]]:
        """Return the commands that this one stands for, with what audit entries show of their outcomes."""
        return [(self, outcome)]

    def audited_fields(self) -> dict[str, Any]:
        """Return the fields of this command that the audit log shows, as far as they are set."""
        names = self.audit.fields if self.audit else ()
        fields = {name: getattr(self, name) for name in names}
        return {name: value for name, value in fields.items() if value is not None}


def add_command_row(book: Book, command: Command, outcome: Outcome, now: datetime, *, accepted: bool) -> None:
    """Add the row of a command that was decided to the draft: its caller, key and outcome, and what it left."""
    fingerprints = book.draft.take(Fingerprint)
    if fingerprints:
        outcome["proves"] = _proved(fingerprints)
    book.draft.add(
        CommandEntry(
            customer_id=book.customer_id,
            command_id=command.command_id,
            caller=command.caller,
            key=command.key,
            kind=type(command).__name__,
            request_hash=command.request_hash,
            accepted=accepted,
            outcome=msgspec.json.encode(outcome).decode(),
            version=book.version + 1,
            booked_at=now,
        )
    )


def _proved(fingerprints: Sequence[Fingerprint]) -> dict[str, dict[str, str]]:
    """Return the fingerprints of the rows a command leaves, by table and id."""
    proved: dict[str, dict[str, str]] = {}
    for row, key, value in fingerprints:
        if not row.fingerprinted:
            raise InvariantError(f"{row.__name__} is not fingerprinted.")
        proved.setdefault(stored_name(row.table), {})[str(key)] = value
    return proved


def decides(*kinds: type[Command]) -> Callable[[Rule], Rule]:
    """Declare the rule of these commands."""

    def declare(rule: Rule) -> Rule:
        for kind in kinds:
            kind.rule = rule
        return rule

    return declare


def commands() -> Iterator[type[Command]]:
    """Return every command whose rule is loaded."""
    waiting = Command.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if hasattr(kind, "rule"):
            yield kind


class Missing(Exception):
    """A rule needs a customer whose book is not loaded."""

    def __init__(self, customer_id: UUID) -> None:
        super().__init__(str(customer_id))
        self.customer_id = customer_id


def book_of(books: Books, customer_id: UUID) -> Book:
    """The customer's book. Raises Missing, so that the engine loads it and runs the rule again."""
    book = books.get(customer_id)
    if book is None:
        raise Missing(customer_id)
    return book
