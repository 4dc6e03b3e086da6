"""Screens names of customers, applicants and counterparties."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Final
from uuid import UUID

from billfold.accounts.counterparties.commands import SettleScreening
from billfold.accounts.counterparties.rules.identifiers import bic_error
from billfold.accounts.counterparties.store import find_payees, open_payees
from billfold.accounts.counterparties.types import CounterpartyStatus, Payee, SanctionsStatus
from billfold.audit import record
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.platform import ids
from billfold.platform.crypto import fingerprint
from billfold.platform.database.connection import Db
from billfold.platform.ids import command_id, derive
from billfold.screening import hits, store
from billfold.screening.rules import NameIndex, country_names, listed_wallets, wallet_key
from billfold.screening.types import HitContent, HitRow, HitStatus, Match, ScreenedName, Subject, SubjectKind

NEW_HITS_MAX: Final = 20
"""Maximum number of new hits of one name to store at once, highest scores first."""


class CurrentList:
    """The index of the list in force, which a process builds once."""

    def __init__(self) -> None:
        self._list_id: UUID | None = None
        self._index: NameIndex | None = None
        self._wallets: frozenset[str] = frozenset()
        self._building = asyncio.Lock()

    async def index(self, conn: Db) -> NameIndex | None:
        """Return the index of the list in force, None before the first import."""
        async with self._building:
            row = await store.find_current(conn)
            if row is not None and row.list_id != self._list_id:
                entries = await store.load_entries(conn, row.list_id)
                self._index = await asyncio.to_thread(NameIndex, entries)
                self._wallets = listed_wallets(entries)
                self._list_id = row.list_id
            return self._index

    async def has_wallet(self, conn: Db, address: str) -> bool:
        """Return whether a wallet address, on any chain, is on the list in force."""
        await self.index(conn)
        return wallet_key(address) in self._wallets


async def screen_subjects(bank: Bank, subjects: Sequence[Subject], *, now: datetime) -> int:
    """Compare names with the list in force; return how many new hits there are. `now` is business time.

    A hit that already exists, cleared or not, is not reported again: same name of the same subject, and
    same name of the same entry. New hits of one name are limited to what operators can review; when these are
    cleared, it is screened again.
    """
    index = await bank.ports[CurrentList].index(bank.pool)
    if index is None:
        return 0
    matches = await asyncio.to_thread(_find_all, index, subjects, bank.settings.sanctions_threshold)
    found = [
        {_hit_id(bank.seed, subject, each): (subject, each) for each in alike}
        for subject, alike in zip(subjects, matches, strict=True)
    ]
    known = await hits.list_known(bank.pool, [hit_id for each in found for hit_id in each]) if any(found) else set()
    new: dict[UUID, tuple[Subject, Match]] = {}
    for of_subject in found:
        unknown = ((hit_id, hit) for hit_id, hit in of_subject.items() if hit_id not in known)
        new.update(islice(unknown, NEW_HITS_MAX))
    rows = [await _new_row(bank, hit_id, *new[hit_id], now=now) for hit_id in sorted(new)]
    return await _record_hits(bank, rows) if rows else 0


def _find_all(index: NameIndex, subjects: Sequence[Subject], threshold: int) -> list[list[Match]]:
    found = {name: index.find(name, threshold=threshold) for name in {each.name for each in subjects}}
    return [found[each.name] for each in subjects]


def names_of_countries(*codes: str | None) -> tuple[str, ...]:
    """Return the English names of countries, each once."""
    return tuple(dict.fromkeys(_country_names()[each] for each in codes if each in _country_names()))


@cache
def _country_names() -> dict[str, str]:
    return dict(country_names(files("tzdata.zoneinfo").joinpath("iso3166.tab").read_text(encoding="utf-8")))


async def _record_hits(bank: Bank, rows: Sequence[HitRow]) -> int:
    async with record.audited(bank, bank.own_id, Origin.system(), "sanctions_hit.found") as action:
        added = [row.hit_id for row in rows if await hits.add_hit(action, row)]
        action.details["hits"] = [str(each) for each in added]
        if not added:
            action.skip()
        return len(added)


async def _new_row(bank: Bank, hit_id: UUID, subject: Subject, match: Match, *, now: datetime) -> HitRow:
    content = HitContent(screened=subject.name, match=match)
    return HitRow(
        customer_id=bank.own_id,
        hit_id=hit_id,
        subject_kind=subject.kind,
        subject_id=subject.subject_id,
        owner_id=subject.owner_id,
        entry_uid=match.uid,
        score=match.score,
        status=HitStatus.OPEN,
        cleared_by=(),
        confirmed_by=None,
        content=await hits.seal_content(bank.pool, bank, subject.owner_id, hit_id, content=content),
        found_at=now,
        decided_at=None,
    )


def _hit_id(seed: bytes, subject: Subject, match: Match) -> UUID:
    names = fingerprint((subject.name.name, match.uid, match.listed_name))
    return derive(seed, command_id(f"sanctions_hit:{subject.kind}:{subject.subject_id}", names), 0)


Key = tuple[UUID, UUID]
"""A customer, and a counterparty of it."""
_BIC_COUNTRY = slice(4, 6)


async def run_screening_job(bank: Bank, job: ScheduledJob) -> None:
    """Screen a counterparty that was added, and store the result with it."""
    assert job.customer_id is not None
    await screen_counterparties(bank, [(job.customer_id, job.object_id)])


async def screen_counterparties(bank: Bank, keys: Sequence[Key]) -> None:
    """Compare the names of counterparties with the list in force, and store the result with each."""
    payees = await open_payees(bank, await _load(bank, keys))
    subjects = [
        subject
        for customer_id, payee in payees
        if payee.status != CounterpartyStatus.UNLINKED
        for subject in subjects_of(customer_id, payee)
    ]
    await screen_subjects(bank, subjects, now=await bank.now())
    await _store_hit_statuses(bank, keys)


def subjects_of(customer_id: UUID, payee: Payee) -> Iterator[Subject]:
    """Yield the names of a counterparty: its own, and that of its bank."""
    bank_country = _bank_country(payee.details)
    address: dict[str, Any] = payee.details.get("address") or {}
    named: list[tuple[str, tuple[str | None, ...]]] = [(payee.name, (address.get("country"), bank_country))]
    if institution := payee.details.get("institution_name"):
        named.append((institution, (bank_country,)))
    for name, countries in named:
        # Only the payer's word says whether it is a person, so it is compared with persons and companies.
        yield Subject(
            kind=SubjectKind.COUNTERPARTY,
            subject_id=payee.counterparty_id,
            owner_id=customer_id,
            name=ScreenedName(name=name, is_person=False, countries=names_of_countries(*countries)),
        )


async def _store_hit_statuses(bank: Bank, keys: Sequence[Key]) -> None:
    """Store the status of the hits with their counterparties, repeating until it matches the last commit."""
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
