"""Applications are decided: by the identity check, by an operator, in a sandbox by anybody."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from billfold.documents import store as document_store
from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.onboarding.applications.changes import ApplicationChange, changing
from billfold.onboarding.applications.content import open_application
from billfold.onboarding.applications.ports import CheckResult, CheckStatus
from billfold.onboarding.applications.rules.status import INCOMPLETE, RESULTS, require_complete, require_decidable
from billfold.onboarding.applications.screening import screen_application
from billfold.onboarding.applications.types import APPROVE_JOB, ApplicationRow, ApplicationStatus
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused
from billfold.screening.hits import find_standing
from billfold.screening.types import REASON

_LEAVING_CHECK = frozenset({CheckStatus.APPROVED, CheckStatus.MANUAL_REVIEW, CheckStatus.DOCUMENTS_NEEDED})


async def decide(bank: Bank, row: ApplicationRow, result: CheckResult, *, origin: Origin, now: datetime) -> None:
    """Do what was decided; an approved application is APPROVED once its customer is there.

    Raises Refused `application-not-in-review`, `application-incomplete`, `sanctions-hit-open`.
    """
    await screen_application(bank, row, now=now)
    async with changing(bank, row, "reviewed", origin=origin, at=now, wall=wall_now()) as change:
        require_decidable(change.row)
        await _apply(change, result)


async def settle_check(bank: Bank, row: ApplicationRow, result: CheckResult, *, move_id: UUID, now: datetime) -> None:
    """Do what the identity check of a move has found, unless the application has moved on in the meantime."""
    await screen_application(bank, row, now=now)
    async with changing(bank, row, "checked", origin=Origin.system(), at=now, wall=wall_now()) as change:
        current = change.row
        if current.move_id != move_id or current.is_approved or result.status == CheckStatus.WAITING:
            change.action.skip()
            return
        if result.status == CheckStatus.IN_PROGRESS and current.status == ApplicationStatus.PENDING:
            change.action.skip()
            return
        if result.status == CheckStatus.APPROVED and change.application.missing(bank.seed):
            # A document was found invalid while the check ran.
            result = CheckResult(status=CheckStatus.MANUAL_REVIEW, reasons=(INCOMPLETE,))
        if result.status in _LEAVING_CHECK and await find_standing(change.action.conn, current.applicant_id):
            result = CheckResult(status=CheckStatus.MANUAL_REVIEW, reasons=(*result.reasons, REASON))
        await _apply(change, result)


async def complete_documents(bank: Bank, row: ApplicationRow, *, now: datetime) -> None:
    """Give an application to an operator when it has all documents that it was sent back for."""
    if row.status != ApplicationStatus.DOCUMENTS_NEEDED:
        return
    if (await open_application(bank.pool, bank, row)).missing(bank.seed):
        return
    async with changing(bank, row, "completed", origin=Origin.system(), at=now, wall=wall_now()) as change:
        is_waiting = change.row.status == ApplicationStatus.DOCUMENTS_NEEDED
        if not is_waiting or change.application.missing(bank.seed):
            change.action.skip()
            return
        await change.move(ApplicationStatus.MANUAL_REVIEW)


async def _apply(change: ApplicationChange, result: CheckResult) -> None:
    if result.status == CheckStatus.APPROVED:
        await _approve(change)
        return
    reasons = result.reasons
    if result.status == CheckStatus.DOCUMENTS_NEEDED:
        await _send_back(change, result.documents, reasons)
    await change.move(RESULTS[result.status], reasons=reasons, wait_until=result.look_again_at)


async def _approve(change: ApplicationChange) -> None:
    require_complete(change.application.missing(change.bank.seed))
    row = change.row
    if await find_standing(change.action.conn, row.applicant_id):
        raise Refused("sanctions-hit-open", "A name of the application is like one of the sanctions list.")
    await change.update(is_approved=True, exception_reasons=[], updated_at=change.at)
    change.action.details["decision"] = CheckStatus.APPROVED
    job = ScheduledJob(APPROVE_JOB, row.applicant_id, row.customer_id, change.at)
    await jobs_store.schedule(change.action.conn, [job])


async def _send_back(change: ApplicationChange, types: Sequence[str], reasons: Sequence[str]) -> None:
    """Request documents of these types: a new file where there is one, or a document that was not required before."""
    row, conn = change.row, change.action.conn
    known = [each for each in change.application.documents if each.type in types]
    reason = "; ".join(reasons) or "Another file is needed."
    await document_store.review_documents(
        conn, row.customer_id, [each.document_id for each in known], status="INVALID", reason=reason
    )
    new = set(types) - {each.type for each in known}
    await change.update(requested_documents=sorted({*row.requested_documents, *new}))
    change.action.details["documents"] = sorted(types)
