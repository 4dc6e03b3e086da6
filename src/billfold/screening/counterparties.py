"""Counterparties are screened: when they are added, when a list is imported, and when a hit of theirs is decided."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.commands import SettleScreening
from billfold.accounts.counterparties.rules.identifiers import bic_error
from billfold.accounts.counterparties.store import find_payees, open_payees
from billfold.accounts.counterparties.types import CounterpartyStatus, Payee, SanctionsStatus
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.platform import ids
from billfold.screening import hits
from billfold.screening.screening import names_of_countries, screen
from billfold.screening.types import ScreenedName, Subject, SubjectKind

Key = tuple[UUID, UUID]
"""A customer, and a counterparty of it."""
_BIC_COUNTRY = slice(4, 6)


async def run_screening_job(bank: Bank, job: ScheduledJob) -> None:
    """Screen a counterparty that was added, and keep what was found with it."""
    assert job.customer_id is not None
    await screen_counterparties(bank, [(job.customer_id, job.object_id)])


async def screen_counterparties(bank: Bank, keys: Sequence[Key]) -> None:
    """Compare the names of counterparties with the list in force, and keep with each what stands against it."""
    payees = await open_payees(bank, await _load(bank, keys))
    subjects = [
        subject
        for customer_id, payee in payees
        if payee.status != CounterpartyStatus.UNLINKED
        for subject in subjects_of(customer_id, payee)
    ]
    await screen(bank, subjects, now=await bank.now())
    await _settle(bank, keys)


def subjects_of(customer_id: UUID, payee: Payee) -> Iterator[Subject]:
    """Yield the names of a counterparty: its own, and that of its bank."""
    bank_country = _bank_country(payee.details)
    address: dict[str, Any] = payee.details.get("address") or {}
    named: list[tuple[str, tuple[str | None, ...]]] = [(payee.name, (address.get("country"), bank_country))]
    if institution := payee.details.get("institution_name"):
        named.append((institution, (bank_country,)))
    for name, countries in named:
        # Whether it is a person only its payer says: it is compared with persons and companies.
        yield Subject(
            kind=SubjectKind.COUNTERPARTY,
            subject_id=payee.counterparty_id,
            owner_id=customer_id,
            name=ScreenedName(name=name, is_person=False, countries=names_of_countries(*countries)),
        )


async def _settle(bank: Bank, keys: Sequence[Key]) -> None:
    """Keep the status of the hits with their counterparties, until it is the one that holds after the last commit."""
    while keys:
        payees = await _load(bank, keys)
        standing = await hits.list_standing(bank.pool, [each for each, _ in keys], [each for _, each in keys])
        keys = []
        for customer_id, payee in payees:
            found = SanctionsStatus(standing.get(payee.counterparty_id, SanctionsStatus.CLEAR))
            if payee.sanctions in {found, SanctionsStatus.CONFIRMED}:
                continue
            await bank.engine.submit(
                SettleScreening(
                    caller="sanctions",
                    key=ids.new(),
                    customers=(customer_id,),
                    origin=Origin.system(),
                    counterparty_id=payee.counterparty_id,
                    sanctions=found,
                )
            )
            keys.append((customer_id, payee.counterparty_id))


async def _load(bank: Bank, keys: Sequence[Key]) -> list[tuple[UUID, Payee]]:
    found = await find_payees(bank.pool, [each for each, _ in keys], [each for _, each in keys])
    return [(customer_id, payee) for customer_id, _, payee in found]


def _bank_country(details: dict[str, Any]) -> str | None:
    """Return the country in a BIC."""
    bic = details.get("routing_number", "")
    return bic[_BIC_COUNTRY] if bic_error(bic) is None else None
