"""The search of a company by a few words: payees, Pockets, people, amounts and ids, as far as a member's role reads.

Everything is read through the member's own access or by the company's id, so nothing foreign is ever found.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from litestar import get
from rapidfuzz import fuzz, process, utils

from billfold.accounts.counterparties.routes import get_counterparty
from billfold.accounts.counterparties.store import list_payee_names
from billfold.accounts.pockets.routes import get_pocket
from billfold.accounts.pockets.store import list_not_closed
from billfold.accounts.transactions.routes import get_transaction, list_own_transactions
from billfold.approvals.transfer_requests_routes import get_transfer_request
from billfold.http.raw_request import is_uuid
from billfold.platform.errors import InvalidInput, NotFound
from billfold.team.routes import get_team
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import cents_of
from billfold.web.page_context import PageResponse

_TEXT_MAX, _SHOWN_MAX = 100, 8
_ALIKE = 72
"""Two letters in the wrong order are alike; other words are not."""
_BY_ID = (
    (get_pocket, "pocket_id", "pockets", "Pocket", "pockets.read"),
    (get_transaction, "transaction_id", "transactions", "Transaction", "pockets.read"),
    (get_counterparty, "counterparty_id", "counterparties", "Counterparty", "transfers.read"),
    (get_transfer_request, "transfer_id", "transfer-requests", "Transfer request", "transfers.read"),
)


class Hit(NamedTuple):
    """A place that was found."""

    label: str
    kind: str
    path: str


@get("/companies/{customer_id:str}/find")
async def find_in_company(company: InCompany) -> PageResponse:
    """Show what a text finds."""
    text = company.page.query.get("q", "").strip()[:_TEXT_MAX]
    if is_uuid(text):
        hits = await _by_id(company, text)
    else:
        named = await list_named(company) if text else []
        found = await asyncio.to_thread(alike, text, [each.label for each in named], limit=_SHOWN_MAX)
        hits = [*(named[each] for each in found), *await _by_amount(company, text)] if text else []
    return company.render("find", text=text, hits=hits)


async def list_named(company: Company) -> list[Hit]:
    """Return everything of the company that has a name and that the member may read."""
    pool, path, owner = company.page.pool, company.path, company.customer_id
    hits: list[Hit] = []
    if company.may("transfers.read"):
        names = await list_payee_names(pool, owner)
        hits += [Hit(name, "Counterparty", f"{path}/counterparties/{key}") for key, name in names]
    if company.may("pockets.read"):
        pockets = await list_not_closed(pool, owner)
        hits += [Hit(each.name, "Pocket", f"{path}/pockets/{each.pocket_id}") for each in pockets]
    if company.may("team.read"):
        team = await company.api.get(get_team)
        people = [each for group in team.groups for each in group.members if not each.is_service_user]
        hits += [
            Hit(f"{each.first_name} {each.last_name}", "Person", f"/team/{owner}#{each.member_id}") for each in people
        ]
    return hits


def alike(text: str, names: Sequence[str], *, limit: int) -> list[int]:
    """Return the positions of the names that are like a text, the most alike first."""
    found = process.extract(
        text, names, scorer=fuzz.WRatio, processor=utils.default_process, limit=limit, score_cutoff=_ALIKE
    )
    return [position for _, _, position in found]


async def _by_amount(company: Company, text: str) -> list[Hit]:
    """Return the newest transactions of an amount like 1,250.50."""
    if not company.may("pockets.read"):
        return []
    try:
        cents = cents_of("q", text)
        amounts = {"amount_from": cents, "amount_to": cents}
        listed = await company.api.get(list_own_transactions, **amounts, limit=_SHOWN_MAX)
    except InvalidInput:
        return []
    at = f"{company.path}/transactions"
    return [Hit(f"{each.title}, {each.amount.formatted}", "Transaction", f"{at}/{each.id}") for each in listed.items]


async def _by_id(company: Company, text: str) -> list[Hit]:
    for operation, name, place, kind, scope in _BY_ID:
        if not company.may(scope):
            continue
        try:
            await company.api.get(operation, **{name: text})
        except NotFound:
            continue
        return [Hit(text, kind, f"{company.path}/{place}/{text.lower()}")]
    return []
