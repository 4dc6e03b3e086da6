"""What may be asked of ACH entries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction
from billfold.payments.ach.rules.collect import collect_ach
from billfold.payments.ach.rules.micro_deposits import send_micro_deposits
from billfold.payments.ach.rules.originate import originate_ach
from billfold.payments.ach.rules.receive import receive_ach, return_entry
from billfold.payments.ach.rules.receive_return import receive_return, record_noc
from billfold.payments.ach.rules.reschedule import reschedule_entries
from billfold.payments.ach.rules.reversal import reinitiate_ach, reverse_ach
from billfold.payments.ach.rules.review import review_ach
from billfold.payments.ach.rules.risk import OriginationHistory
from billfold.payments.ach.rules.settle import mark_transmitted, settle_entries
from billfold.payments.ach.types import AchEntry, AchStatus, IncomingEntry, PendingReturn


class OriginateAch(Command, frozen=True, kw_only=True):
    """Send `amount` cents to an `ach` counterparty (CREDIT), or take them from it (DEBIT).

    `references` holds the counterparty; `history` is what the review weighs.
    """

    rule = originate_ach
    reference_kinds = (Reference.COUNTERPARTY,)
    fingerprints = (AchEntry,)
    needs_identifiers = False

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


class ReviewAch(Command, frozen=True, kw_only=True):
    """Decide APPROVED, REJECTED or CANCELLED. Looks at the entry."""

    rule = review_ach
    reference_kinds = (Reference.ACH_ENTRY,)
    audit = AuditedAction("ach", lambda c: c.decision.lower(), fields=("reason",))
    fingerprints = (AchEntry,)
    needs_identifiers = False

    ach_id: UUID
    decision: AchStatus
    reason: str | None = None


class RescheduleAch(Command, frozen=True, kw_only=True):
    """Entries of one customer that no file holds, though they were to have settled by now.

    Looks at them.
    """

    rule = reschedule_entries
    former_names = ("PostponeAch",)
    reference_kinds = (Reference.ACH_ENTRY,)
    fingerprints = (AchEntry,)
    needs_identifiers = False

    ach_ids: tuple[UUID, ...]


class MarkAchTransmitted(Command, frozen=True, kw_only=True):
    """A file with these entries of one customer has been handed over. Looks at them."""

    rule = mark_transmitted
    former_names = ("SendAch",)
    reference_kinds = (Reference.ACH_ENTRY,)
    needs_identifiers = False

    ach_ids: tuple[UUID, ...]


class SettleAch(Command, frozen=True, kw_only=True):
    """The time in which most returns come is over for these entries. Looks at them."""

    rule = settle_entries
    former_names = ("CountAchSettled",)
    reference_kinds = (Reference.ACH_ENTRY,)
    needs_identifiers = False

    ach_ids: tuple[UUID, ...]


class CollectAch(Command, frozen=True, kw_only=True):
    """The debit has settled with the rail. Looks at it."""

    rule = collect_ach
    reference_kinds = (Reference.ACH_ENTRY,)
    needs_identifiers = False

    ach_id: UUID


class ReceiveAchReturn(Command, frozen=True, kw_only=True):
    """An entry that we sent comes back. Looks at it. `trace` is the return's own number.

    `direction` is that of the entry as the return's transaction code says it.
    """

    rule = receive_return
    former_names = ("ReturnAch",)
    reference_kinds = (Reference.ACH_ENTRY,)
    needs_identifiers = False

    ach_id: UUID
    code: str
    direction: Direction
    amount: int
    trace: str
    arrived_at: datetime


class RecordNoc(Command, frozen=True, kw_only=True):
    """The receiving bank says what to put right in entries to come. Looks at the entry."""

    rule = record_noc
    former_names = ("NoteAchChange",)
    reference_kinds = (Reference.ACH_ENTRY,)
    needs_identifiers = False

    ach_id: UUID
    code: str
    corrected: str


class ReceiveAch(Command, frozen=True, kw_only=True):
    """An entry of a file, for a portal of the customer. Looks at what came under its id before."""

    rule = receive_ach
    reference_kinds = (Reference.ACH_ENTRY,)
    fingerprints = (AchEntry, PendingReturn)

    ach_id: UUID
    file_id: UUID
    portal_id: UUID
    pocket_id: UUID
    entry: IncomingEntry


class ReturnAchEntry(Command, frozen=True, kw_only=True):
    """Return an entry that was taken, as its receiver asks. Looks at it."""

    rule = return_entry
    former_names = ("GiveBackAch",)
    reference_kinds = (Reference.ACH_ENTRY,)
    audit = AuditedAction("ach", "given_back", fields=("code",))
    fingerprints = (PendingReturn,)

    ach_id: UUID
    code: str


class ReverseAch(Command, frozen=True, kw_only=True):
    """Undo an entry that was sent in error. Looks at it."""

    rule = reverse_ach
    reference_kinds = (Reference.ACH_ENTRY,)
    audit = AuditedAction("ach", "reversed")
    fingerprints = (AchEntry,)
    needs_identifiers = False

    ach_id: UUID


class ReinitiateAch(Command, frozen=True, kw_only=True):
    """Send a debit once more that came back for want of funds. Looks at it."""

    rule = reinitiate_ach
    former_names = ("RetryAch",)
    reference_kinds = (Reference.ACH_ENTRY,)
    audit = AuditedAction("ach", "sent_again")
    fingerprints = (AchEntry,)
    needs_identifiers = False

    ach_id: UUID


class SendMicroDeposits(Command, frozen=True, kw_only=True):
    """Send these amounts (cents) to a counterparty's account. The customer is the house."""

    rule = send_micro_deposits
    fingerprints = (AchEntry,)
    needs_identifiers = False

    counterparty_id: UUID
    amounts: tuple[int, ...]
    routing_number: str
    account_number: str
    account_type: str
    party_name: str
    company_name: str
