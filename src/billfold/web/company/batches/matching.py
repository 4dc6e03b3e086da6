"""The payees that cells of a pasted table name: counterparties and own Pockets by their names, and the most alike."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process, utils

from billfold.accounts.counterparties.routes import list_counterparties
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.customers.store import list_features
from billfold.accounts.pockets.routes import list_own_pockets
from billfold.batches.types import ROWS_MAX
from billfold.web.company.payees import why_not_payable
from billfold.web.console.team import Company

_PAGE: Final = 100
_ALIKE, _WORSE_MAX, _SHOWN_MAX, _COMPARED_MAX = 70, 10, 3, 50
_WALLET = "USDC wallet: it is paid by a single transfer, not in a batch."


class Payee(NamedTuple):
    """A payee that a cell can name: the fields of a row that it gives, how it is shown, and why it cannot be paid."""

    name: str
    fields: Mapping[str, str]
    shown: Mapping[str, str] = {}
    why: str = ""

    @property
    def key(self) -> str:
        """The id of the counterparty or Pocket."""
        return self.fields.get("counterparty_id") or self.fields["to_pocket_id"]


class Payees:
    """Payees by everything that a cell may call them, also those that cannot be paid."""

    def __init__(self) -> None:
        self._named: dict[str, list[Payee]] = {}

    def add(self, payee: Payee, names: Iterable[str]) -> None:
        """Let a cell call a payee by its id or by a name; the last four digits of its account may follow."""
        account = payee.shown.get("account", "")[-4:]
        known = {spelled(each) for each in names}
        for name in {*known, *(f"{each} {spelled(account)}" for each in known if account), spelled(payee.key)} - {""}:
            self._named.setdefault(name, []).append(payee)

    def called(self, text: str) -> Sequence[Payee]:
        """Return whom a cell can mean: of those with this name, the ones that can be paid, or else the first."""
        known = self._named.get(spelled(text.removeprefix("counterparty:").removeprefix("pocket:")), ())
        return [each for each in known if not each.why] or known[:1]

    def words_for(self, payee: Payee) -> str:
        """Return the shortest text by which a cell means this payee and no other."""
        for text in (payee.name, f"{payee.name} {payee.shown.get('account', '')[-4:]}"):
            if [each.key for each in self.called(text)] == [payee.key]:
                return text
        return payee.key

    async def like(self, texts: Collection[str]) -> dict[str, list[Payee]]:
        """Return the payees that can be paid and whose names are the most like each text; of many, the first."""
        payable = {each.key: each for named in self._named.values() for each in named if not each.why}
        return await asyncio.to_thread(_nearest, list(dict.fromkeys(texts))[:_COMPARED_MAX], list(payable.values()))


def spelled(name: str) -> str:
    """Return a name without what spreadsheets spell differently: case, punctuation and spaces."""
    return " ".join("".join(each if each.isalnum() else " " for each in name.lower()).split())


def _nearest(texts: Sequence[str], payees: Sequence[Payee]) -> dict[str, list[Payee]]:
    names = [utils.default_process(each.name) for each in payees]
    found: dict[str, list[Payee]] = {}
    for text in texts:
        near = process.extract(
            utils.default_process(text), names, scorer=fuzz.token_set_ratio, limit=_SHOWN_MAX, score_cutoff=_ALIKE
        )
        found[text] = [payees[place] for _, score, place in near if score >= near[0][1] - _WORSE_MAX]
    return found


async def find_payees(company: Company) -> Payees:
    """Return the open Pockets and the counterparties of a company."""
    features, found = await list_features(company.page.pool, company.customer_id), Payees()
    for each in (await company.api.get(list_own_pockets, **{"filter[status]": "OPEN"}, limit=_PAGE)).items:
        payee = Payee(each.pocket_name, {"type": "INTERNAL_REALLOCATION", "to_pocket_id": str(each.id)})
        found.add(payee, [each.pocket_name])
    for each in await _list_counterparties(company):
        if each.status == "UNLINKED":
            continue
        kind, legal = "PEER_TO_PEER" if each.type == "on_us" else "WIRE", str(each.counterparty_name)
        shown, account = str(each.display_name or legal), str(each.account_number or each.wallet_address)
        why = _WALLET if each.type == "crypto_wallet_address" else why_not_payable(each, features)
        at = {"rail": each.type, "account": account, "payee": str(each.id)}
        found.add(Payee(shown, {"type": kind, "counterparty_id": str(each.id)}, at, why), [shown, legal])
    return found


async def _list_counterparties(company: Company) -> list[Counterparty]:
    """Return the newest counterparties, as many as a batch can name."""
    items: list[Counterparty] = []
    cursor: str | None = None
    while len(items) < ROWS_MAX:
        page = await company.api.get(list_counterparties, limit=_PAGE, cursor=cursor)
        items += page.items
        cursor = page.next_page
        if cursor is None:
            break
    return items
