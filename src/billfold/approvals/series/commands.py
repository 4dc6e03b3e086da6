"""Commands that report what became of a series, each in one event."""

from datetime import date
from uuid import UUID

from billfold.ledger.commands import Command


class ReportRun(Command, frozen=True, kw_only=True):
    """Report a run, whose request is the key: made, or left out or failed for a reason."""

    series_id: UUID
    run_on: date
    reason: str | None


class ReportState(Command, frozen=True, kw_only=True):
    """Report the state that a series has now."""

    series_id: UUID
    state: str
