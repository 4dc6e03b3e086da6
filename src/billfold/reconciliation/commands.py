"""Commands of reconciliation. Their customer is the bank itself."""

from datetime import date
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.reconciliation.types import NewBreak, Resolution, Source


class ReconcileDay(Command, frozen=True, kw_only=True):
    """Record a day's statement, or without a file that there is none: breaks that it opens, changes and closes.

    `references` are the day's id and the breaks that it changes and closes.
    """

    reference_kinds = (Reference.RECONCILED_DAY, Reference.RECONCILIATION_BREAK)
    audit = AuditedAction("reconciliation", "recorded", ("source", "account", "stated_on", "matched"))
    source: Source
    account: str
    day: date
    file_id: UUID | None = None
    opening: int | None = None
    closing: int | None = None
    lines: int = 0
    matched: int = 0
    opened: tuple[NewBreak, ...] = ()
    closed: tuple[UUID, ...] = ()
    changed: tuple[tuple[UUID, int, int], ...] = ()

    @property
    def stated_on(self) -> str:
        """The day, for the audit log."""
        return self.day.isoformat()


class AssignBreak(Command, frozen=True, kw_only=True):
    """Name the owner of a break, and note what is known of it."""

    reference_kinds = (Reference.RECONCILIATION_BREAK,)
    audit = AuditedAction("break", "assigned", ("break_id", "owner", "note"))
    break_id: UUID
    owner: str | None
    note: str | None


class CloseBreak(Command, frozen=True, kw_only=True):
    """Close a break with an explanation, or by a posting of its difference.

    `references` are the break, and the item in suspense that may hold its difference.
    """

    reference_kinds = (Reference.RECONCILIATION_BREAK, Reference.SUSPENSE_ITEM)
    audit = AuditedAction("break", "closed", ("break_id", "resolution", "reason"))
    break_id: UUID
    resolution: Resolution
    reason: str
    difference: int
