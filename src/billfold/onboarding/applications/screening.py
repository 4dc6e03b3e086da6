"""Who applies, and who belongs to it, as they are screened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.accounts.addresses import (Address)
from billfold.onboarding.applications.content import Application, open_application
from billfold.onboarding.applications.forms import IndividualForm
from billfold.onboarding.applications.types import ApplicationRow
from billfold.screening.screening import names_of_countries, screen
from billfold.screening.types import ScreenedName, Subject, SubjectKind

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank


async def screen_application(bank: Bank, row: ApplicationRow, *, now: datetime) -> None:
    """Compare all names of an application with the list in force. `now` is business time."""
    application = await open_application(bank.pool, bank, row)
    await screen(bank, list(subjects_of(application)), now=now)


def subjects_of(application: Application) -> Iterator[Subject]:
    """Yield the applicant, under each of its names, and its related parties."""
    form, applicant_id = application.form, application.row.applicant_id
    if isinstance(form, IndividualForm):
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
    return names_of_countries(address.country if address else None, citizenship)
