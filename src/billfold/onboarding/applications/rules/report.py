"""Events of applications, raised at who made them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from billfold.events import kinds
from billfold.events.kinds import ApplicationPayload
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import EventKind
from billfold.onboarding.applications.commands import ReportApplication
from billfold.onboarding.applications.types import ApplicationStatus

EVENTS: Final[Mapping[ApplicationStatus, EventKind[ApplicationPayload]]] = MappingProxyType(
    {
        ApplicationStatus.APPROVED: kinds.APPLICATION_APPROVED,
        ApplicationStatus.REJECTED: kinds.APPLICATION_REJECTED,
        ApplicationStatus.MANUAL_REVIEW: kinds.APPLICATION_MANUAL_REVIEW,
        ApplicationStatus.DOCUMENTS_NEEDED: kinds.APPLICATION_DOCUMENTS_NEEDED,
    }
)


@decides(ReportApplication)
def report_application(books: Books, cmd: ReportApplication, ctx: Context) -> Outcome:
    """Raise the event of a move."""
    event(
        book_of(books, cmd.customers[0]), ctx, EVENTS[cmd.status], ApplicationPayload(application_id=cmd.application_id)
    )
    return {"application_id": str(cmd.application_id)}
