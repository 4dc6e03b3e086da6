"""Decides applications: the identity check, its jobs, and the names that are screened."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

from billfold.accounts.addresses import Address
from billfold.documents import store as document_store
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.onboarding.applications import forms, store
from billfold.onboarding.applications.changes import ApplicationChange, application_change
from billfold.onboarding.applications.content import Application, open_application
from billfold.onboarding.applications.ports import CheckedApplication, CheckResult, CheckStatus, IdentityCheck
from billfold.onboarding.applications.rules import status
from billfold.onboarding.applications.rules.requirements import UNUSABLE
from billfold.onboarding.applications.types import APPROVE_JOB, ApplicationRow, ApplicationStatus, move_id_of
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.screening import hits, screening
from billfold.screening.types import REASON, ScreenedName, Subject, SubjectKind


async def screen_application(bank: Bank, row: ApplicationRow, *, now: datetime) -> None:
    """Compare all names of an application with the list in force. `now` is business time."""
    application = await open_application(bank.pool, bank, row)
    await screening.screen_subjects(bank, list(subjects_of(application)), now=now)


def subjects_of(application: Application) -> Iterator[Subject]:
    """Yield the applicant, with each of its names, and its related parties."""
    form, applicant_id = application.form, application.row.applicant_id
    if isinstance(form, forms.IndividualForm):
        name = ScreenedName(
            name=form.name.written,
            is_person=True,
            born_on=form.date_of_birth,
            countries=_countries(form.address, form.citizenship_country),
        )
        yield _subject(SubjectKind.APPLICATION, applicant_id, applicant_id, name)
        return
    for written in {form.name, form.doing_business_as}:
        if isinstance(written, str):
            name = ScreenedName(name=written, is_person=False, countries=_countries(form.address or None))
            yield _subject(SubjectKind.APPLICATION, applicant_id, applicant_id, name)
    for party_id, party in application.parties.items():
        if party.name:
            name = ScreenedName(
                name=party.name.written,
                is_person=True,
                born_on=party.date_of_birth or None,
                countries=_countries(party.address or None, party.citizenship or None),
            )
            yield _subject(SubjectKind.RELATED_PARTY, party_id, applicant_id, name)


def _subject(kind: SubjectKind, subject_id: UUID, owner_id: UUID, name: ScreenedName) -> Subject:
    return Subject(kind=kind, subject_id=subject_id, owner_id=owner_id, name=name)


def _countries(address: Address | None, citizenship: str | None = None) -> tuple[str, ...]:
    return screening.names_of_countries(address.country if address else None, citizenship)


_LEAVING_CHECK = frozenset({CheckStatus.APPROVED, CheckStatus.MANUAL_REVIEW, CheckStatus.DOCUMENTS_NEEDED})


async def decide(bank: Bank, row: ApplicationRow, result: CheckResult, *, origin: Origin, now: datetime) -> None:
    """Carry out a decision; an approved application becomes APPROVED once its customer exists.

    Raises Refused `application-not-in-review`, `application-incomplete`, `sanctions-hit-open`.
    """
    await screen_application(bank, row, now=now)
    async with application_change(bank, row, "reviewed", origin=origin, at=now, wall=wall_now()) as change:
        status.require_decidable(change.row)
        await _apply_decision(change, result)


async def settle_check(bank: Bank, row: ApplicationRow, result: CheckResult, *, move_id: UUID, now: datetime) -> None:
    """Carry out the result of the identity check of a move, unless the status has changed in the meantime."""
    await screen_application(bank, row, now=now)
    async with application_change(bank, row, "checked", origin=Origin.system(), at=now, wall=wall_now()) as change:
        current = change.row
        if current.move_id != move_id or current.is_approved or result.status == CheckStatus.WAITING:
            change.action.skip()
            return
        if result.status == CheckStatus.IN_PROGRESS and current.status == ApplicationStatus.PENDING:
            change.action.skip()
            return
        if result.status == CheckStatus.APPROVED and change.application.missing(bank.seed):
            # A document was found invalid while the check ran.
            result = CheckResult(status=CheckStatus.MANUAL_REVIEW, reasons=(status.INCOMPLETE,))
        if result.status in _LEAVING_CHECK and await hits.find_standing(change.action.conn, current.applicant_id):
            result = CheckResult(status=CheckStatus.MANUAL_REVIEW, reasons=(*result.reasons, REASON))
        await _apply_decision(change, result)


async def complete_documents(bank: Bank, row: ApplicationRow, *, now: datetime) -> None:
    """Hand an application to an operator once it has all documents that it was sent back for."""
    if row.status != ApplicationStatus.DOCUMENTS_NEEDED:
        return
    if (await open_application(bank.pool, bank, row)).missing(bank.seed):
        return
    async with application_change(bank, row, "completed", origin=Origin.system(), at=now, wall=wall_now()) as change:
        is_waiting = change.row.status == ApplicationStatus.DOCUMENTS_NEEDED
        if not is_waiting or change.application.missing(bank.seed):
            change.action.skip()
            return
        await change.move(ApplicationStatus.MANUAL_REVIEW)


async def _apply_decision(change: ApplicationChange, result: CheckResult) -> None:
    if result.status == CheckStatus.APPROVED:
        await _approve_application(change)
        return
    reasons = result.reasons
    if result.status == CheckStatus.DOCUMENTS_NEEDED:
        await _send_back(change, result.documents, reasons)
    await change.move(status.RESULTS[result.status], reasons=reasons, wait_until=result.look_again_at)


async def _approve_application(change: ApplicationChange) -> None:
    status.require_complete(change.application.missing(change.bank.seed))
    row = change.row
    if await hits.find_standing(change.action.conn, row.applicant_id):
        raise Refused("sanctions-hit-open", "A name of the application is like one of the sanctions list.")
    await change.update(is_approved=True, exception_reasons=[], updated_at=change.at)
    change.action.details["decision"] = CheckStatus.APPROVED
    job = ScheduledJob(APPROVE_JOB, row.applicant_id, row.customer_id, change.at)
    await scheduler.schedule(change.action.conn, [job])


async def _send_back(change: ApplicationChange, types: Sequence[str], reasons: Sequence[str]) -> None:
    """Request documents of these types: a new file for an existing document, or an additional document."""
    row, conn = change.row, change.action.conn
    known = [each for each in change.application.documents if each.type in types]
    reason = "; ".join(reasons) or "Another file is needed."
    await document_store.review_documents(
        conn, row.customer_id, [each.document_id for each in known], status="INVALID", reason=reason
    )
    new = set(types) - {each.type for each in known}
    await change.update(requested_documents=sorted({*row.requested_documents, *new}))
    change.action.details["documents"] = sorted(types)


_CHECKED = frozenset({ApplicationStatus.SUBMITTED, ApplicationStatus.PENDING})


async def run_check_job(bank: Bank, job: ScheduledJob) -> None:
    """Check the identity of the application of a move; without a provider an operator decides."""
    move = await store.find_move(bank.pool, job.object_id)
    assert move is not None
    row = await store.get_application(bank.pool, move.customer_id, move.application_id)
    if row.status not in _CHECKED or row.move_id != move.move_id or row.is_approved:
        return
    now = await bank.now()
    application = await open_application(bank.pool, bank, row)
    result = CheckResult(status=CheckStatus.MANUAL_REVIEW)
    if bank.ports.get(IdentityCheck) is not None:
        result = await bank.ports[IdentityCheck].check(_checked(application), now)
    result = status.reviewed_result(
        result, application.form, agreement_version=bank.terms.agreements.in_force(et_date(now))
    )
    await settle_check(bank, row, result, move_id=move.move_id, now=now)
    if result.look_again_at is not None and result.status in {CheckStatus.WAITING, CheckStatus.IN_PROGRESS}:
        # If the move has been superseded, the job runs once more and finds nothing to do.
        await scheduler.schedule(bank.pool, [job._replace(at=result.look_again_at)])


async def run_report_job(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of a status change."""
    move = await store.find_move(bank.pool, job.object_id)
    assert move is not None
    await bank.engine.submit(
        status.ReportApplication(
            caller="application",
            key=move.move_id,
            customers=(move.customer_id,),
            application_id=move.application_id,
            status=move.status,
        )
    )


async def run_document_job(bank: Bank, job: ScheduledJob) -> None:
    """Check whether a document was the last that its application was waiting for."""
    try:
        document = await document_store.get_document(bank.pool, job.object_id)
    except NotFound:
        return
    if document.application_id is not None:
        row = await store.get_application(bank.pool, document.customer_id, document.application_id)
        await complete_documents(bank, row, now=await bank.now())


async def run_expire_job(bank: Bank, job: ScheduledJob) -> None:
    """Close an application that was never submitted and has not been changed for a long time."""
    row = await store.find_by_applicant(bank.pool, job.object_id)
    if row is None or row.status != ApplicationStatus.CREATED:
        return
    now = await bank.now()
    async with application_change(bank, row, "closed", origin=Origin.system(), at=now, wall=wall_now()) as change:
        idle_until = change.row.updated_at + status.IDLE_LIMIT
        if change.row.status != ApplicationStatus.CREATED:
            change.action.skip()
        elif idle_until > now:
            change.action.skip()
            await scheduler.schedule(change.action.conn, [job._replace(at=idle_until)])
        else:
            await change.move(ApplicationStatus.CLOSED)


def _checked(application: Application) -> CheckedApplication:
    row = application.row
    assert row.submitted_at is not None
    return CheckedApplication(
        check_id=move_id_of(row.applicant_id, row.move_no - (row.status == ApplicationStatus.PENDING)),
        submitted_at=row.submitted_at,
        applicant=application.form,
        related_parties=tuple(application.parties.values()),
        uploaded=frozenset(each.type for each in application.documents if each.status not in UNUSABLE),
    )
