"""Whoever is a customer, or wants to be, is screened anew when a list is imported; a confirmed hit has its effect."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from billfold.accounts.commands import SetPocketState
from billfold.accounts.customers.profiles import open_profile
from billfold.accounts.pockets import store as pocket_store
from billfold.audit.types import Origin
from billfold.ledger.directory.store import find_customer
from billfold.ledger.directory.types import CustomerRow
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.types import ScheduledJob
from billfold.ledger.types import PocketStatus
from billfold.onboarding.applications import store
from billfold.onboarding.applications.changes import changing
from billfold.onboarding.applications.content import open_application
from billfold.onboarding.applications.rules.status import ENDED
from billfold.onboarding.applications.screening import names_of_countries, subjects_of
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus
from billfold.onboarding.screening import hits
from billfold.onboarding.screening.screening import screen
from billfold.onboarding.screening.types import REASON, HitRow, ScreenedName, Subject, SubjectKind
from billfold.platform.clock import wall_now
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

_UNTIL_ENROLLED: Final = timedelta(minutes=1)


async def run_screen_job(bank: Bank, job: ScheduledJob) -> None:
    """Compare all names of one customer or applicant with the list in force; `job.object_id` is their id."""
    row = await store.find_by_applicant(bank.pool, job.object_id)
    subjects = [] if row is None else list(subjects_of(await open_application(bank.pool, bank, row)))
    customer = await find_customer(bank.pool, job.object_id)
    if customer is not None:
        known = {each.name.name for each in subjects if each.kind == SubjectKind.APPLICATION}
        subjects += [each for each in _customer(await open_profile(bank, customer)) if each.name.name not in known]
    await screen(bank, subjects, now=await bank.now())


async def run_confirmed_job(bank: Bank, job: ScheduledJob) -> None:
    """Reject the application of a confirmed hit; freeze the Pockets of whoever is a customer already."""
    hit = await hits.get_hit(bank.pool, job.object_id)
    row = await store.find_by_applicant(bank.pool, hit.owner_id)
    if row is not None and row.status not in ENDED and not row.is_approved:
        await _reject(bank, row)
    elif await find_customer(bank.pool, hit.owner_id) is not None:
        await _freeze(bank, hit)
    elif row is not None and row.is_approved:
        await jobs_store.schedule(bank.pool, [job._replace(at=job.at + _UNTIL_ENROLLED)])


async def _reject(bank: Bank, row: ApplicationRow) -> None:
    async with changing(bank, row, "reviewed", origin=Origin.system(), at=await bank.now(), wall=wall_now()) as change:
        if change.row.status in ENDED or change.row.is_approved:
            change.action.skip()
            return
        await change.move(ApplicationStatus.REJECTED, reasons=(REASON,))


async def _freeze(bank: Bank, hit: HitRow) -> None:
    pockets = await pocket_store.list_ids(bank.pool, hit.owner_id)
    for pocket in await pocket_store.list_by_id(bank.pool, [(hit.owner_id, each) for each in pockets]):
        if pocket.status != PocketStatus.OPEN:
            continue
        await bank.engine.submit(
            SetPocketState(
                caller="sanctions",
                key=command_id(f"sanctions.freeze:{hit.hit_id}", pocket.pocket_id),
                customers=(hit.owner_id,),
                origin=Origin.system(),
                pocket_id=pocket.pocket_id,
                status=PocketStatus.FROZEN,
            )
        )


def _customer(row: CustomerRow) -> Iterator[Subject]:
    profile: dict[str, Any] = msgspec.json.decode(row.profile)
    born_on, address = profile.get("date_of_birth"), profile.get("address") or {}
    name = ScreenedName(
        name=row.name,
        is_person=row.type == "INDIVIDUAL",
        born_on=date.fromisoformat(born_on) if isinstance(born_on, str) else None,
        countries=names_of_countries(address.get("country")),
    )
    yield Subject(kind=SubjectKind.CUSTOMER, subject_id=row.customer_id, owner_id=row.customer_id, name=name)
