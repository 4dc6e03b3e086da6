"""The command that raises the events of reports."""

from uuid import UUID

from billfold.ledger.commands import Command


class FinishReport(Command, frozen=True, kw_only=True):
    """Raise the event of formats that were requested at once; the key is their batch. No report: it failed."""

    needs_identifiers = False

    report_request_id: UUID
    report_id: UUID | None = None
