"""ACH entries and returns as stored, and the commands on them. `references` names the entries a rule needs."""

from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.accounts.holds.commands import Payment
from billfold.ledger.book.notes import TRANSFER
from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction
from billfold.payments.routing_numbers import routing_number_of
from billfold.platform.database.rows import Row


class AchWay(StrEnum):
    """Side of an entry: originated or received by the bank."""

    ORIGINATION = "ORIGINATION"
    RECEIVING = "RECEIVING"


class AchStatus(StrEnum):
    """The status of an entry."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"
    IN_TRANSIT = "IN_TRANSIT"
    PROCESSED = "PROCESSED"
    FAILED = "FAILED"


ACCOUNT_KINDS = "2345"
"""The first digits of transaction codes: checking, savings, general ledger and loan accounts."""
LINE_WIDTH = 80
"""Characters of payment-related information in one addenda; these classes allow one addenda."""
AMOUNT_MAX_CENTS = 99_999_999_99
"""The maximum of an amount: ten digits of cents."""


class AchEntry(Row, frozen=True, kw_only=True):
    """One entry as stored. Amounts are cents.

    `way` is the side of the bank, originator or receiver; `direction` is that of the entry: a CREDIT
    pays its receiver. `pocket_id` is None for the bank's own entries.
    """

    table = "ach_entry"
    key_column = "ach_id"
    fingerprinted = True
    changing = frozenset(
        {
            *("status", "reason", "return_code", "trace_number", "file_id"),
            *("entry_no", "change_code", "corrected", "updated_at"),
        }
    )
    keeps_former = (*sorted(changing), "due_at", "effective_on", "settles_at", "settled_at", "held_until")

    customer_id: UUID
    ach_id: UUID
    pocket_id: UUID | None
    partner_id: UUID | None
    way: AchWay
    direction: Direction
    status: AchStatus
    reason: str | None = None
    return_code: str | None = None
    sec_code: str
    company_name: str
    description: str
    lines: list[str] = msgspec.field(default_factory=list)
    amount: int
    counterparty_id: UUID | None = None
    portal_id: UUID | None = None
    routing_number: str
    account_number: str
    account_type: str
    party_name: str
    identification: str
    trace_number: str | None = None
    file_id: UUID | None = None
    due_at: datetime | None = None
    effective_on: date | None = None
    settles_at: datetime | None = None
    settled_at: datetime | None = None
    held_until: datetime | None = None
    entry_no: int | None = None
    reverses_id: UUID | None = None
    times: int = 0
    change_code: str | None = None
    corrected: str | None = None
    request: str | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """True if it waits to be sent, or to settle as a collection."""
        if self.status in {AchStatus.PENDING, AchStatus.APPROVED}:
            return True
        return self.status == AchStatus.IN_TRANSIT and self.direction == Direction.DEBIT and self.entry_no is None

    @property
    def pays_out(self) -> bool:
        """True if the entry debits the pocket: a credit originated or a debit received."""
        return (self.direction == Direction.CREDIT) == (self.way == AchWay.ORIGINATION)

    @property
    @override
    def lasting(self) -> tuple[object, ...]:
        # A received entry has the trace number of its sender, and its file from the start.
        origin_fields = (self.trace_number, self.file_id) if self.way == AchWay.RECEIVING else ()
        return (*super().lasting, *origin_fields)


class IncomingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as received in a file, with the fields that its return must repeat."""

    code: str  # transaction code
    amount: int
    account_number: str
    name: str
    identification: str
    trace: str  # 15 digits
    bank: str  # 8 digits, of the originating bank
    entry_class: str
    company: str
    company_id: str
    purpose: str
    effective_on: date | None = None
    lines: list[str] = []

    @property
    def is_debit(self) -> bool:
        """True if it debits the account."""
        return self.code[1] >= "5"

    @property
    def direction(self) -> Direction:
        """CREDIT or DEBIT."""
        return Direction.DEBIT if self.is_debit else Direction.CREDIT

    @property
    def account_type(self) -> str:
        """The account type that the transaction code implies."""
        return "SAVINGS" if self.code[0] == "3" else "CHECKING"

    @property
    def is_prenote(self) -> bool:
        """True if it is a prenote, which only verifies that the account exists."""
        return self.code[1] in "38"


class PendingReturn(Row, frozen=True, kw_only=True):
    """A return that waits for its window; `payload` is the JSON text of a `ReturnEntry`."""

    table = "ach_return_entry"
    key_column = "return_entry_id"
    fingerprinted = True
    changing = frozenset({"created_at"})
    # Returns of the bank itself were held in suspense, or move nothing.
    proof_needed = "t.customer_id <> (SELECT bank_customer_id FROM bank)"

    return_entry_id: UUID
    customer_id: UUID
    due_at: datetime
    payload: str
    created_at: datetime


class ReturnEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A return that we send: as receiving bank (RDFI) R01 and the like, as originating bank (ODFI)
    the dishonored return of a return that we do not accept (R61 to R70).
    """

    reason: str
    code: str  # transaction code of the return
    routing_number: str  # 9 digits, of the bank it goes to
    account_number: str
    amount: int
    name: str
    identification: str
    original_trace: str
    original_bank: str  # 8 digits
    entry_class: str
    company: str
    company_id: str
    purpose: str
    information: str = ""


def return_of(entry: IncomingEntry, reason: str, *, bank: str, information: str = "") -> ReturnEntry:
    """Return the return of an entry; `bank` is the eight-digit identification of the receiving bank."""
    kind = entry.code[0] if entry.code[0] in ACCOUNT_KINDS else ACCOUNT_KINDS[0]
    return ReturnEntry(
        reason=reason,
        code=kind + ("6" if entry.is_debit else "1"),
        routing_number=routing_number_of(entry.bank),
        account_number=entry.account_number,
        amount=entry.amount,
        name=entry.name,
        identification=entry.identification,
        original_trace=entry.trace,
        original_bank=bank,
        entry_class=entry.entry_class,
        company=entry.company,
        company_id=entry.company_id,
        purpose=entry.purpose,
        information=information,
    )


class OriginationHistory(NamedTuple):
    """Originations of a customer: cents of today, and debits of sixty days with their returns."""

    today_cents: int = 0
    debits: int = 0
    returned: int = 0
    administrative: int = 0
    unauthorised: int = 0


class EntryCommand(Command, frozen=True, kw_only=True):
    """A command on one recorded entry."""

    reference_kinds = (Reference.ACH_ENTRY,)
    ach_id: UUID


class EntriesCommand(Command, frozen=True, kw_only=True):
    """A command on many entries of one customer."""

    reference_kinds = (Reference.ACH_ENTRY,)
    ach_ids: tuple[UUID, ...]


class OriginateAch(Payment, frozen=True, kw_only=True):
    """Originate an entry of `amount` cents: a payment to a counterparty (CREDIT) or a collection (DEBIT).

    `references` holds the counterparty; `history` is the input of the review.
    """

    reference_kinds = (Reference.COUNTERPARTY,)
    notes_on = (TRANSFER, "ach_id")

    ach_id: UUID
    pocket_id: UUID
    counterparty_id: UUID
    direction: Direction
    sec_code: str
    description: str
    lines: tuple[str, ...] = ()
    amount: int
    history: OriginationHistory = OriginationHistory()
    request: str = "{}"


class ReviewAch(EntryCommand, frozen=True, kw_only=True):
    """Approve, reject or cancel an entry."""

    audit = AuditedAction("ach", lambda c: c.decision.lower(), fields=("reason",))

    decision: AchStatus
    reason: str | None = None


class RescheduleAch(EntriesCommand, frozen=True, kw_only=True):
    """Move entries of one customer that missed their window to the next one."""

    former_names = ("PostponeAch",)


class MarkAchTransmitted(EntriesCommand, frozen=True, kw_only=True):
    """Record that the file with these entries of one customer was transmitted."""

    former_names = ("SendAch",)


class SettleAch(EntriesCommand, frozen=True, kw_only=True):
    """Count these entries of one customer as settled: most returns have arrived by now."""

    former_names = ("CountAchSettled",)


class CollectAch(EntryCommand, frozen=True, kw_only=True):
    """Book the money of a debit that has settled with the rail."""


class ReceiveAchReturn(EntryCommand, frozen=True, kw_only=True):
    """Receive the return of an entry that we originated. `trace` is the trace number of the return.

    `direction` is that of the original entry, derived from the return's transaction code.
    """

    former_names = ("ReturnAch",)

    code: str
    direction: Direction
    amount: int
    trace: str
    arrived_at: datetime


class RecordNoc(EntryCommand, frozen=True, kw_only=True):
    """Record a notification of change (NOC) from the receiving bank; `corrected` is sealed."""

    former_names = ("NoteAchChange",)

    code: str
    corrected: str


class ReceiveAch(Command, frozen=True, kw_only=True):
    """Receive an entry for a portal. `references` holds its id, to find an earlier copy."""

    needs_identifiers = True
    reference_kinds = (Reference.ACH_ENTRY,)

    ach_id: UUID
    file_id: UUID
    portal_id: UUID
    pocket_id: UUID
    entry: IncomingEntry


class ReturnAchEntry(EntryCommand, frozen=True, kw_only=True):
    """Return a received entry at the request of its receiver, who may have signed that it was not authorized."""

    former_names = ("GiveBackAch",)
    audit = AuditedAction("ach", "given_back", fields=("code", "has_signed_statement"))

    code: str
    has_signed_statement: bool | None = None


class ReverseAch(EntryCommand, frozen=True, kw_only=True):
    """Originate the reversal of an entry that was sent in error."""

    audit = AuditedAction("ach", "reversed")


class ReinitiateAch(EntryCommand, frozen=True, kw_only=True):
    """Reinitiate a debit that was returned for insufficient funds."""

    former_names = ("RetryAch",)
    audit = AuditedAction("ach", "sent_again")


class SendMicroDeposits(Command, frozen=True, kw_only=True):
    """Send these amounts (cents) to a counterparty's account, sealed with the bank's key, on behalf of the bank."""

    counterparty_id: UUID
    amounts: tuple[int, ...]
    routing_number: str
    account_number: str
    account_type: str
    party_name: str
    company_name: str
