"""Commands on ACH entries. `references` names the entries a rule needs."""

from datetime import datetime
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction
from billfold.payments.ach.types import AchStatus, IncomingEntry, OriginationHistory


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

    reference_kinds = (Reference.COUNTERPARTY,)
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

    reference_kinds = (Reference.ACH_ENTRY,)

    ach_id: UUID
    file_id: UUID
    portal_id: UUID
    pocket_id: UUID
    entry: IncomingEntry


class ReturnAchEntry(EntryCommand, frozen=True, kw_only=True):
    """Return a received entry at the request of its receiver."""

    former_names = ("GiveBackAch",)
    audit = AuditedAction("ach", "given_back", fields=("code",))

    code: str


class ReverseAch(EntryCommand, frozen=True, kw_only=True):
    """Originate the reversal of an entry that was sent in error."""

    audit = AuditedAction("ach", "reversed")


class ReinitiateAch(EntryCommand, frozen=True, kw_only=True):
    """Reinitiate a debit that was returned for insufficient funds."""

    former_names = ("RetryAch",)
    audit = AuditedAction("ach", "sent_again")


class SendMicroDeposits(Command, frozen=True, kw_only=True):
    """Send these amounts (cents) to a counterparty's account, sealed with the bank's key, on behalf of the bank."""

    needs_identifiers = False

    counterparty_id: UUID
    amounts: tuple[int, ...]
    routing_number: str
    account_number: str
    account_type: str
    party_name: str
    company_name: str
