"""Names are compared with the list in force; what is like one of its names becomes a hit, once."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Final
from uuid import UUID

from billfold.audit import record as audit_record
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.crypto import fingerprint
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.ids import command_id, derive
from billfold.screening import hits, store
from billfold.screening.rules import NameIndex, country_names, listed_wallets, wallet_key
from billfold.screening.types import HitContent, HitRow, HitStatus, Match, Subject

NEW_HITS_MAX: Final = 20
"""How many new hits of one name are kept at once, the highest scores first."""


class CurrentList:
    """The index of the list in force, which a process builds once."""

    def __init__(self) -> None:
        self._list_id: UUID | None = None
        self._index: NameIndex | None = None
        self._wallets: frozenset[str] = frozenset()
        self._building = asyncio.Lock()

    async def index(self, conn: Connection | Pool) -> NameIndex | None:
        """Return the index of the list in force, None before the first import."""
        async with self._building:
            row = await store.find_current(conn)
            if row is not None and row.list_id != self._list_id:
                entries = await store.load_entries(conn, row.list_id)
                self._index = await asyncio.to_thread(NameIndex, entries)
                self._wallets = listed_wallets(entries)
                self._list_id = row.list_id
            return self._index

    async def has_wallet(self, conn: Connection | Pool, address: str) -> bool:
        """Tell whether the address of a wallet, of whatever chain, is on the list in force."""
        await self.index(conn)
        return wallet_key(address) in self._wallets


async def screen(bank: Bank, subjects: Sequence[Subject], *, now: datetime) -> int:
    """Compare names with the list in force; return how many new hits there are. `now` is business time.

    A hit that is there already, cleared or not, is not found again: it is the same name of the same subject, and the
    same name of the same entry. Of one name so many new hits are kept that operators can look at; when these are
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
    return await _record(bank, rows) if rows else 0


def _find_all(index: NameIndex, subjects: Sequence[Subject], threshold: int) -> list[list[Match]]:
    found = {name: index.find(name, threshold=threshold) for name in {each.name for each in subjects}}
    return [found[each.name] for each in subjects]


def names_of_countries(*codes: str | None) -> tuple[str, ...]:
    """Return the English names of countries, each once."""
    return tuple(dict.fromkeys(_country_names()[each] for each in codes if each in _country_names()))


@cache
def _country_names() -> dict[str, str]:
    return dict(country_names(files("tzdata.zoneinfo").joinpath("iso3166.tab").read_text(encoding="utf-8")))


async def _record(bank: Bank, rows: Sequence[HitRow]) -> int:
    async with audit_record.audited(
        bank.pool,
        bank.vault,
        bank_customer_id(bank.seed),
        origin=Origin.system(),
        action="sanctions_hit.found",
        resource=("sanctions_hit", None),
        now=wall_now(),
    ) as action:
        added = [row.hit_id for row in rows if await hits.add_hit(action, row)]
        action.details["hits"] = [str(each) for each in added]
        if not added:
            action.skip()
        return len(added)


async def _new_row(bank: Bank, hit_id: UUID, subject: Subject, match: Match, *, now: datetime) -> HitRow:
    content = HitContent(screened=subject.name, match=match)
    return HitRow(
        customer_id=bank_customer_id(bank.seed),
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
