"""All customers, applicants and counterparties are screened again when a list is imported. Effects of decisions."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog

from billfold.accounts.customers.commands import SetCustomerState
from billfold.accounts.customers.store import is_frozen_by_others
from billfold.accounts.profiles import open_profile
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerRow, CustomerStatus
from billfold.ledger.directory import find_customer
from billfold.ledger.types import Origin, ScheduledJob
from billfold.onboarding.applications import store
from billfold.onboarding.applications.changes import application_change
from billfold.onboarding.applications.content import open_application
from billfold.onboarding.applications.decisions import subjects_of
from billfold.onboarding.applications.rules.status import ENDED
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import locked, read_put_aside
from billfold.platform.database.connection import Connection
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.screening import hits
from billfold.screening import store as screening_store
from billfold.screening.screening import names_of_countries, screen_counterparties, screen_subjects
from billfold.screening.store import Task
from billfold.screening.types import REASON, HitStatus, ScreenedName, Subject, SubjectKind

_UNTIL_ENROLLED: Final = timedelta(minutes=1)
_BATCH_MAX: Final = 50
_CALLER: Final = "sanctions"
_LOCK: Final = 0x7363726E  # "scrn"
"""The advisory lock of the backlog, which one process at a time works through."""
log = structlog.get_logger(__name__)


async def screen_backlog(bank: Bank) -> int:
    """Screen some of the subjects that a new list is still to be compared with; return how many.

    A task of the worker with a loop of its own: nothing else waits for it. Failures are deferred and tried again.
    """
    async with locked(bank.pool, _LOCK) as conn:
        return 0 if conn is None else await _screen_some(bank, conn)


async def run_decided_job(bank: Bank, job: ScheduledJob) -> None:
    """Apply the decision about a hit; `job.object_id` is its id.

    A counterparty is screened again, which finds its other matches, and may be used if there are none left;
    a confirmed one is unlinked. A confirmed applicant is rejected. A customer is frozen while a hit is not cleared.
    """
    hit = await hits.get_hit(bank.pool, job.object_id)
    if hit.subject_kind == SubjectKind.COUNTERPARTY:
        await screen_counterparties(bank, [(hit.owner_id, hit.subject_id)])
    else:
        await _refuse_or_freeze(bank, hit.owner_id, job)


async def _screen_some(bank: Bank, conn: Connection) -> int:
    await screening_store.enumerate_list(conn)
    wall = wall_now()
    aside = await read_put_aside(conn, "screening", wall)
    tasks = await screening_store.list_next(conn, _BATCH_MAX, except_for=[UUID(each) for each in aside.waiting])
    failed = await _screen_each(bank, tasks)
    done = [each.subject_id for each in tasks if str(each.subject_id) not in failed]
    await screening_store.complete_subjects(conn, done)
    await aside.record(conn, failed, wall)
    for subject_id, error in failed.items():
        log.error("screening_failed", subject=subject_id, error=error_summary(error))
    return len(done)


async def _screen_each(bank: Bank, tasks: Sequence[Task]) -> dict[str, Exception]:
    """Screen counterparties together, and one by one if that fails; return the failures by the subject's id."""
    failed: dict[str, Exception] = {}
    counterparties = [each for each in tasks if each.is_counterparty]
    alone = [each for each in tasks if not each.is_counterparty]
    try:
        await screen_counterparties(bank, [(each.customer_id, each.subject_id) for each in counterparties])
    except Exception as error:
        if is_shortage(error):
            raise
        alone += counterparties
    for task in alone:
        try:
            await _screen_one(bank, task)
        except Exception as error:
            if is_shortage(error):
                raise
            failed[str(task.subject_id)] = error
    return failed


async def _screen_one(bank: Bank, task: Task) -> None:
    if task.is_counterparty:
        await screen_counterparties(bank, [(task.customer_id, task.subject_id)])
        return
    row = await store.find_by_applicant(bank.pool, task.subject_id)
    subjects = [] if row is None else list(subjects_of(await open_application(bank.pool, bank, row)))
    customer = await find_customer(bank.pool, task.subject_id)
    if customer is not None:
        known = {each.name.name for each in subjects if each.kind == SubjectKind.APPLICATION}
        subjects += [
            each for each in _customer_subjects(await open_profile(bank, customer)) if each.name.name not in known
        ]
    await screen_subjects(bank, subjects, now=await bank.now())
    await settle_customer(bank, task.subject_id)


async def _refuse_or_freeze(bank: Bank, owner_id: UUID, job: ScheduledJob) -> None:
    """Reject the application of a confirmed hit; freeze or unfreeze one who is a customer already."""
    row = await store.find_by_applicant(bank.pool, owner_id)
    if await find_customer(bank.pool, owner_id) is not None:
        await settle_customer(bank, owner_id)
    elif row is None or await hits.find_standing(bank.pool, owner_id) != HitStatus.CONFIRMED:
        return
    elif row.is_approved:
        await scheduler.schedule(bank.pool, [job._replace(at=job.at + _UNTIL_ENROLLED)])
    elif row.status not in ENDED:
        await _reject_application(bank, row)


async def settle_customer(bank: Bank, customer_id: UUID) -> None:
    """Freeze a customer while a hit is not cleared; unfreeze it unless frozen by others since."""
    while True:
        customer = await find_customer(bank.pool, customer_id)
        if customer is None or customer.account_status == CustomerStatus.CLOSED:
            return
        stands = await hits.find_standing(bank.pool, customer_id) is not None
        is_frozen = customer.account_status == CustomerStatus.FROZEN
        if stands == is_frozen or (is_frozen and await is_frozen_by_others(bank.pool, customer_id, _CALLER)):
            return
        await bank.engine.submit(
            SetCustomerState(
                caller=_CALLER,
                key=ids.new(),
                customers=(customer_id,),
                origin=Origin.system(),
                references=(customer_id,),
                status=CustomerStatus.FROZEN if stands else CustomerStatus.OPEN,
                reason=REASON,
            )
        )


async def _reject_application(bank: Bank, row: ApplicationRow) -> None:
    async with application_change(
        bank, row, "reviewed", origin=Origin.system(), at=await bank.now(), wall=wall_now()
    ) as change:
        if change.row.status in ENDED or change.row.is_approved:
            change.action.skip()
            return
        await change.move(ApplicationStatus.REJECTED, reasons=(REASON,))


def _customer_subjects(row: CustomerRow) -> Iterator[Subject]:
    profile: dict[str, Any] = msgspec.json.decode(row.profile)
    born_on, address = profile.get("date_of_birth"), profile.get("address") or {}
    name = ScreenedName(
        name=row.name,
        is_person=row.type == "INDIVIDUAL",
        born_on=date.fromisoformat(born_on) if isinstance(born_on, str) else None,
        countries=names_of_countries(address.get("country")),
    )
    yield Subject(kind=SubjectKind.CUSTOMER, subject_id=row.customer_id, owner_id=row.customer_id, name=name)
