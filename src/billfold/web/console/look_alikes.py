"""Counterparties that are easily taken for another one: by name, or by the ends of a wallet's address."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from anyascii import anyascii
from rapidfuzz import fuzz, process, utils
from rapidfuzz.distance import Levenshtein

from billfold.accounts.counterparties.requests import render_counterparties
from billfold.accounts.counterparties.routes import list_counterparties
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.counterparties.store import list_by_ids, list_payee_names
from billfold.platform.database.paging import LIMIT_MAX
from billfold.web.console.team import Company

_ALIKE = 85
_SHOWN_MAX = 3
_COMPARED_MAX = 200
_FIRST, _LAST = 6, 4
"""The characters of an address that people compare; who wants to be mistaken for another makes an address with them."""
_REMOVED = "UNLINKED"
_WALLETS = "crypto_wallet_address"


class Part(NamedTuple):
    """A part of a text, and whether the other text has something else there."""

    text: str
    differs: bool


class LookAlike(NamedTuple):
    """A counterparty like the one that is shown: both texts in parts, how the other is called, and both accounts."""

    counterparty_id: UUID | None
    own: list[Part]
    other: list[Part]
    name: str = ""
    own_id: UUID | None = None
    own_payee: Counterparty | None = None
    other_payee: Counterparty | None = None

    @property
    def differs(self) -> bool:
        """Tell whether the texts differ at all."""
        return any(each.differs for each in (*self.own, *self.other))


async def find_look_alikes(company: Company, shown: Counterparty) -> list[LookAlike]:
    """Return the linked counterparties of a company that are easily taken for one of them."""
    named = [each for each in await list_payee_names(company.page.pool, company.customer_id) if each[0] != shown.id]
    found = await asyncio.to_thread(like_names, shown.counterparty_name, named)
    found = [each._replace(own_id=shown.id) for each in found]
    if shown.type != _WALLETS or not shown.wallet_address:
        return await _with_accounts(company, found)
    wallets = (await company.api.get(list_counterparties, type=_WALLETS, limit=LIMIT_MAX)).items
    own = shown.wallet_address
    alike = [each for each in wallets if each.status != _REMOVED and are_wallets_alike(own, each.wallet_address or "")]
    found = [each for each in found if each.counterparty_id not in {wallet.id for wallet in alike}]
    by_address = [
        LookAlike(each.id, *parts_of(own, each.wallet_address), each.counterparty_name, shown.id) for each in alike
    ]
    return await _with_accounts(company, [*by_address, *found])


async def _with_accounts(company: Company, found: Sequence[LookAlike]) -> list[LookAlike]:
    """Return look-alikes with what tells the payees apart: their accounts and statuses."""
    keys = list({key for each in found for key in (each.own_id, each.counterparty_id) if key})
    rows = await list_by_ids(company.page.pool, company.customer_id, keys) if keys else []
    opened = await render_counterparties(company.page.server.bank, company.customer_id, rows)
    payees = {each.id: each for each in opened}

    def payee_of(key: UUID | None) -> Counterparty | None:
        return payees.get(key) if key else None

    return [
        each._replace(own_payee=payee_of(each.own_id), other_payee=payee_of(each.counterparty_id)) for each in found
    ]


def like_names(own: str, named: Sequence[tuple[UUID, str]]) -> list[LookAlike]:
    """Return those whose names are like one; a name may stand behind that which the team gave."""
    if not _heard(own):
        return []
    names = [_legal(name, own) for _, name in named]
    found = process.extract(own, names, scorer=fuzz.ratio, processor=_heard, limit=_SHOWN_MAX, score_cutoff=_ALIKE)
    return [LookAlike(named[each][0], *parts_of(own, names[each])) for _, _, each in found]


async def find_alike(company: Company, names: Mapping[str, UUID | None]) -> dict[str, list[LookAlike]]:
    """Return what is easily taken for counterparties with these names: linked ones, and new ones among them.

    A new one has no id. Of many names only the first are compared.
    """
    if not names:
        return {}
    named = await list_payee_names(company.page.pool, company.customer_id)
    found = await asyncio.to_thread(_like_each, dict(list(names.items())[:_COMPARED_MAX]), named)
    shown = iter(await _with_accounts(company, [each for others in found.values() for each in others]))
    return {name: [next(shown) for _ in others] for name, others in found.items()}


def _like_each(names: Mapping[str, UUID | None], linked: Sequence[tuple[UUID, str]]) -> dict[str, list[LookAlike]]:
    named = [*linked, *((None, name) for name, key in names.items() if key is None)]
    heard = [_heard(shown.rpartition(" / ")[2]) for _, shown in named]
    found: dict[str, list[LookAlike]] = {}
    for own, key in names.items():
        near = process.extract(_heard(own), heard, scorer=fuzz.ratio, limit=_SHOWN_MAX + 1, score_cutoff=_ALIKE)
        others = [
            named[place] for _, _, place in near if named[place] != (None, own) and named[place][0] != (key or own)
        ]
        if others:
            found[own] = [
                LookAlike(
                    each, *parts_of(own, _legal(shown, own)), name="" if each else "In this list, too", own_id=key
                )
                for each, shown in others[:_SHOWN_MAX]
            ]
    return found


def each_pair_once(found: Mapping[str, Sequence[LookAlike]]) -> list[LookAlike]:
    """Return look-alikes of several names; two that are taken for each other are one pair."""
    pairs = {
        frozenset((each.own_id or _whole(each.own), each.counterparty_id or _whole(each.other))): each
        for others in found.values()
        for each in others
    }
    return list(pairs.values())


def _whole(parts: Sequence[Part]) -> str:
    return "".join(each.text for each in parts)


def _legal(shown: str, own: str) -> str:
    """Return the name behind that which the team gave; both if another legal name may have a slash."""
    return shown if " / " in own else shown.rpartition(" / ")[2]


def _heard(name: str) -> str:
    """Return a name in Latin letters: those of another script that look like them are no difference."""
    return utils.default_process(anyascii(name))


def are_wallets_alike(one: str, other: str) -> bool:
    """Return whether two addresses differ, but not in the characters that people compare."""
    (first, second) = one.lower(), other.lower()
    return first != second and first[:_FIRST] == second[:_FIRST] and first[-_LAST:] == second[-_LAST:]


def parts_of(own: str, other: str) -> tuple[list[Part], list[Part]]:
    """Return two texts in parts that are the same in both or not."""
    steps = Levenshtein.opcodes(own, other)
    return (
        [
            Part(own[each.src_start : each.src_end], each.tag != "equal")
            for each in steps
            if each.src_end > each.src_start
        ],
        [
            Part(other[each.dest_start : each.dest_end], each.tag != "equal")
            for each in steps
            if each.dest_end > each.dest_start
        ],
    )
