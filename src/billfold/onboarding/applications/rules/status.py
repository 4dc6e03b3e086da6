"""Moves of applications from status to status (contract 2.6), and their events."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from billfold.events import kinds
from billfold.events.kinds import ApplicationPayload
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import EventKind
from billfold.onboarding.applications.forms import AnyForm, IndividualForm
from billfold.onboarding.applications.ports import CheckResult, CheckStatus
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus
from billfold.platform.errors import Refused


class ReportApplication(Command, frozen=True, kw_only=True):
    """Raise the event of a status change at `customers[0]`, who made the application. Its key is the move's id."""

    application_id: UUID
    status: ApplicationStatus


EVENTS: Final[Mapping[ApplicationStatus, EventKind[ApplicationPayload]]] = {
    ApplicationStatus.APPROVED: kinds.APPLICATION_APPROVED,
    ApplicationStatus.REJECTED: kinds.APPLICATION_REJECTED,
    ApplicationStatus.MANUAL_REVIEW: kinds.APPLICATION_MANUAL_REVIEW,
    ApplicationStatus.DOCUMENTS_NEEDED: kinds.APPLICATION_DOCUMENTS_NEEDED,
}


@decides(ReportApplication)
def report_application(books: Books, cmd: ReportApplication, ctx: Context) -> Outcome:
    """Raise the event of a status change."""
    event(
        book_of(books, cmd.customers[0]), ctx, EVENTS[cmd.status], ApplicationPayload(application_id=cmd.application_id)
    )
    return {"application_id": str(cmd.application_id)}


IDLE_LIMIT: Final = timedelta(days=90)
"""A CREATED business application is closed after this time without a change."""
EDITABLE: Final = frozenset({ApplicationStatus.CREATED, ApplicationStatus.DOCUMENTS_NEEDED})
DECIDABLE: Final = frozenset({ApplicationStatus.SUBMITTED, ApplicationStatus.PENDING, ApplicationStatus.MANUAL_REVIEW})
"""Statuses in which the identity check, or an operator in its place, decides."""
ENDED: Final = frozenset({ApplicationStatus.APPROVED, ApplicationStatus.REJECTED, ApplicationStatus.CLOSED})
OUTDATED_AGREEMENT: Final = "AGREEMENT_VERSION_OUTDATED"
INCOMPLETE: Final = "APPLICATION_INCOMPLETE"
INTERNATIONAL_ID: Final = "INTERNATIONAL_IDENTIFICATION"
RESULTS: Final[Mapping[CheckStatus, ApplicationStatus]] = {
    CheckStatus.IN_PROGRESS: ApplicationStatus.PENDING,
    CheckStatus.APPROVED: ApplicationStatus.APPROVED,
    CheckStatus.REJECTED: ApplicationStatus.REJECTED,
    CheckStatus.MANUAL_REVIEW: ApplicationStatus.MANUAL_REVIEW,
    CheckStatus.DOCUMENTS_NEEDED: ApplicationStatus.DOCUMENTS_NEEDED,
}


def require_editable(row: ApplicationRow) -> None:
    """Refuses: application-not-editable."""
    if row.status not in EDITABLE:
        raise Refused("application-not-editable", f"The application is {row.status}.")


def require_decidable(row: ApplicationRow) -> None:
    """Refuses: application-not-in-review."""
    if row.status not in DECIDABLE or row.is_approved:
        state = "APPROVED" if row.is_approved else row.status
        raise Refused("application-not-in-review", f"The application is {state}.")


def require_complete(missing: list[str]) -> None:
    """Refuses: application-incomplete, which names the missing items."""
    if missing:
        raise Refused(
            "application-incomplete", f"The application lacks {', '.join(missing)}.", missing_requirements=missing
        )


def reviewed_result(result: CheckResult, form: AnyForm, *, agreement_version: str | None) -> CheckResult:
    """Return the result of an identity check, adjusted for cases that only a person may approve."""
    if result.status != CheckStatus.APPROVED:
        return result
    reasons = []
    if not form.agreement_consent or form.agreement_consent.version != agreement_version:
        reasons.append(OUTDATED_AGREEMENT)
    if isinstance(form, IndividualForm) and form.identification_type == "INTERNATIONAL_ID":
        reasons.append(INTERNATIONAL_ID)
    return CheckResult(status=CheckStatus.MANUAL_REVIEW, reasons=tuple(reasons)) if reasons else result
