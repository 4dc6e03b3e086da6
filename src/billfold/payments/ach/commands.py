"""Commands on ACH entries. `references` names the entries a rule needs."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction
from billfold.payments.ach.rules.micro_deposits import send_micro_deposits
from billfold.payments.ach.rules.originate import collect_ach, originate_ach
from billfold.payments.ach.rules.receive import receive_ach, return_entry
from billfold.payments.ach.rules.receive_return import receive_return, record_noc
from billfold.payments.ach.rules.reversal import reinitiate_ach, reverse_ach
from billfold.payments.ach.rules.review import review_ach
from billfold.payments.ach.types import (OriginationHistory)
from billfold.payments.ach.rules.settle import mark_transmitted, reschedule_entries, settle_entries
from billfold.payments.ach.types import AchEntry, AchStatus, IncomingEntry, PendingReturn


class EntryCommand(Command, frozen=True, kw_only=True):
    """A command on one recorded entry."""

    reference_kinds = (Reference.ACH_ENTRY,)
    needs_identifiers = False

    ach_id: UUID


class EntriesCommand(Command, frozen=True, kw_only=True):
    """A command on many entries of one customer."""

    reference_kinds = (Reference.ACH_ENTRY,)
    needs_identifiers = False

    ach_ids: tuple[UUID, ...]


class OriginateAch(Command, frozen=True, kw_only=True):
    """Originate an entry of `amount` cents: a payment to a counterparty (CREDIT) or a collection (DEBIT).

    `references` holds the counterparty; `history` is the input of the review.
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


class ReviewAch(EntryCommand, frozen=True, kw_only=True):
    """Approve, reject or cancel an entry."""

    rule = review_ach
    audit = AuditedAction("ach", lambda c: c.decision.lower(), fields=("reason",))
    fingerprints = (AchEntry,)

    decision: AchStatus
    reason: str | None = None


class RescheduleAch(EntriesCommand, frozen=True, kw_only=True):
    """Move entries of one customer that missed their window to the next one."""

    rule = reschedule_entries
    former_names = ("PostponeAch",)
    fingerprints = (AchEntry,)


class MarkAchTransmitted(EntriesCommand, frozen=True, kw_only=True):
    """Record that the file with these entries of one customer was transmitted."""

    rule = mark_transmitted
    former_names = ("SendAch",)


class SettleAch(EntriesCommand, frozen=True, kw_only=True):
    """Count these entries of one customer as settled: most returns have arrived by now."""

    rule = settle_entries
    former_names = ("CountAchSettled",)


class CollectAch(EntryCommand, frozen=True, kw_only=True):
    """Book the money of a debit that has settled with the rail."""

    rule = collect_ach


class ReceiveAchReturn(EntryCommand, frozen=True, kw_only=True):
    """Receive the return of an entry that we originated. `trace` is the trace number of the return.

    `direction` is that of the original entry, derived from the return's transaction code.
    """

    rule = receive_return
    former_names = ("ReturnAch",)

    code: str
    direction: Direction
    amount: int
    trace: str
    arrived_at: datetime


class RecordNoc(EntryCommand, frozen=True, kw_only=True):
    """Record a notification of change (NOC) from the receiving bank; `corrected` is sealed."""

    rule = record_noc
    former_names = ("NoteAchChange",)

    code: str
    corrected: str


class ReceiveAch(Command, frozen=True, kw_only=True):
    """Receive an entry for a portal. `references` holds its id, to find an earlier copy."""

    rule = receive_ach
    reference_kinds = (Reference.ACH_ENTRY,)
    fingerprints = (AchEntry, PendingReturn)

    ach_id: UUID
    file_id: UUID
    portal_id: UUID
    pocket_id: UUID
    entry: IncomingEntry


class ReturnAchEntry(EntryCommand, frozen=True, kw_only=True):
    """Return a received entry at the request of its receiver."""

    rule = return_entry
    former_names = ("GiveBackAch",)
    audit = AuditedAction("ach", "given_back", fields=("code",))
    fingerprints = (PendingReturn,)

    code: str


class ReverseAch(EntryCommand, frozen=True, kw_only=True):
    """Originate the reversal of an entry that was sent in error."""

    rule = reverse_ach
    audit = AuditedAction("ach", "reversed")
    fingerprints = (AchEntry,)


class ReinitiateAch(EntryCommand, frozen=True, kw_only=True):
    """Reinitiate a debit that was returned for insufficient funds."""

    rule = reinitiate_ach
    former_names = ("RetryAch",)
    audit = AuditedAction("ach", "sent_again")
    fingerprints = (AchEntry,)


class SendMicroDeposits(Command, frozen=True, kw_only=True):
    """Send these amounts (cents) to a counterparty's account, sealed with the bank's key, on behalf of the bank."""

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
