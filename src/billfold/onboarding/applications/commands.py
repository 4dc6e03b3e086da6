"""The command that raises the events of applications."""

from uuid import UUID

from billfold.ledger.commands import Command
from billfold.onboarding.applications.types import ApplicationStatus


class ReportApplication(Command, frozen=True, kw_only=True):
    """Raise the event of a status at `customers[0]`, who made the application. Its key is the move."""

    needs_identifiers = False

    application_id: UUID
    status: ApplicationStatus
