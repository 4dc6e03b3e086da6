"""Scheduled jobs of applications: checks, events, files that were waited for, applications nobody fills in."""

from billfold.documents import store as document_store
from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.onboarding.applications import store
from billfold.onboarding.applications.changes import changing
from billfold.onboarding.applications.commands import ReportApplication
from billfold.onboarding.applications.content import Application, open_application
from billfold.onboarding.applications.decisions import complete_documents, settle_check
from billfold.onboarding.applications.ports import CheckedApplication, CheckResult, CheckStatus, IdentityCheck
from billfold.onboarding.applications.rules.requirements import UNUSABLE
from billfold.onboarding.applications.rules.status import IDLE_LIMIT, reviewed_result
from billfold.onboarding.applications.types import ApplicationStatus, move_id_of
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound

_CHECKED = frozenset({ApplicationStatus.SUBMITTED, ApplicationStatus.PENDING})


async def run_check_job(bank: Bank, job: ScheduledJob) -> None:
    """Check the identity behind the application of a move; without a provider an operator decides."""
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
    result = reviewed_result(result, application.form, agreement_version=bank.terms.agreements.in_force(et_date(now)))
    await settle_check(bank, row, result, move_id=move.move_id, now=now)
    if result.look_again_at is not None and result.status in {CheckStatus.WAITING, CheckStatus.IN_PROGRESS}:
        # Of a move that has become another one, this looks once more and finds nothing to do.
        await jobs_store.schedule(bank.pool, [job._replace(at=result.look_again_at)])


async def run_report_job(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of a move."""
    move = await store.find_move(bank.pool, job.object_id)
    assert move is not None
    await bank.engine.submit(
        ReportApplication(
            caller="application",
            key=move.move_id,
            customers=(move.customer_id,),
            application_id=move.application_id,
            status=move.status,
        )
    )


async def run_document_job(bank: Bank, job: ScheduledJob) -> None:
    """Look whether the file of a document was the last that its application waited for."""
    try:
        document = await document_store.get_document(bank.pool, job.object_id)
    except NotFound:
        return
    if document.application_id is not None:
        row = await store.get_application(bank.pool, document.customer_id, document.application_id)
        await complete_documents(bank, row, now=await bank.now())


async def run_expire_job(bank: Bank, job: ScheduledJob) -> None:
    """Close an application that was never submitted and that nobody has changed for a long time."""
    row = await store.find_by_applicant(bank.pool, job.object_id)
    if row is None or row.status != ApplicationStatus.CREATED:
        return
    now = await bank.now()
    async with changing(bank, row, "closed", origin=Origin.system(), at=now, wall=wall_now()) as change:
        idle_until = change.row.updated_at + IDLE_LIMIT
        if change.row.status != ApplicationStatus.CREATED:
            change.action.skip()
        elif idle_until > now:
            change.action.skip()
            await jobs_store.schedule(change.action.conn, [job._replace(at=idle_until)])
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
