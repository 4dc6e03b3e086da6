"""The search of a team by a few words, as far as the member's role reads.

A company finds payees, Pockets, people, amounts and ids, a partner customers, amounts, ids and the numbers of payments.
Everything is read through the member's own access or by the team's id, so nothing foreign is ever found.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from litestar import get
from rapidfuzz import fuzz, process, utils

from billfold.accounts.counterparties.routes import get_counterparty
from billfold.accounts.counterparties.store import list_payee_names
from billfold.accounts.customers.routes import list_customers
from billfold.accounts.pockets.routes import get_pocket
from billfold.accounts.pockets.store import list_not_closed
from billfold.accounts.transactions.routes import get_transaction, list_own_transactions, list_transactions
from billfold.accounts.transactions.schemas import Transaction
from billfold.approvals.transfer_requests_routes import get_transfer_request
from billfold.events.routes import get_event
from billfold.events.webhooks.routes import get_subscription
from billfold.http.operations import Operation
from billfold.http.raw_request import is_uuid
from billfold.onboarding.applications.routes import get_business_application, get_individual_application
from billfold.platform.errors import InvalidInput, NotFound
from billfold.servicing.search import search
from billfold.team.routes import get_team
from billfold.web.console.customers import name_of
from billfold.web.console.partner import Partner
from billfold.web.console.team import ApiTeam, Company, InTeam, paths_of
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
_BY_ID_OF_PARTNER = (
    (get_business_application, "application_id", "applications", "Application", "applications.read"),
    (get_individual_application, "application_id", "applications/persons", "Application", "applications.read"),
    (get_event, "event_id", "developer/events", "Event", "subscriptions.read"),
    (get_subscription, "subscription_id", "developer/subscriptions", "Subscription", "subscriptions.read"),
)
Sought = tuple[Operation, str, str, str, str]


class Hit(NamedTuple):
    """A place that was found."""

    label: str
    kind: str
    path: str


@get(paths_of("/find"))
async def find(team: InTeam) -> PageResponse:
    """Show what a text finds."""
    text = team.page.query.get("q", "").strip()[:_TEXT_MAX]
    of = _in_company if isinstance(team, Company) else _in_partner
    return team.render("find", text=text, hits=await of(team, text) if text else [])


async def _in_company(company: ApiTeam, text: str) -> list[Hit]:
    assert isinstance(company, Company)
    if is_uuid(text):
        return await _by_id(company, text, _BY_ID)
    named = await list_named(company)
    found = await asyncio.to_thread(alike, text, [each.label for each in named], limit=_SHOWN_MAX)
    return [*(named[each] for each in found), *await _by_amount(company, text, list_own_transactions)]


async def _in_partner(partner: ApiTeam, text: str) -> list[Hit]:
    assert isinstance(partner, Partner)
    customers, hits = f"{partner.path}/customers", list[Hit]()
    for each in await search(partner.bank, text, partner.row.partner_id):
        name = each.listing.columns[0].name
        hits += [Hit(row[name], each.listing.one, f"{customers}/{row['customer_id']}") for row in each.rows]
    if is_uuid(text):
        return [*hits, *await _by_id(partner, text, _BY_ID_OF_PARTNER)]
    listed = await partner.api.get(list_customers, name=text, limit=_SHOWN_MAX)
    hits += [Hit(name_of(each), "Customer", f"{customers}/{each.id}") for each in listed.items]
    return [*hits, *await _by_amount(partner, text, list_transactions)]


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


async def _by_amount(team: ApiTeam, text: str, operation: Operation) -> list[Hit]:
    """Return the newest transactions of an amount like 1,250.50."""
    if not team.may("pockets.read"):
        return []
    try:
        cents = cents_of("q", text)
        listed = await team.api.get(operation, amount_from=cents, amount_to=cents, limit=_SHOWN_MAX)
    except InvalidInput:
        return []
    rows = [(f"{each.title}, {each.amount.formatted}", await _page_of(team, each)) for each in listed.items]
    return [Hit(label, "Transaction", path) for label, path in rows]


async def _page_of(team: ApiTeam, transaction: Transaction) -> str:
    """Return the page of a transaction; a partner has that of its customer."""
    if isinstance(team, Company):
        return f"{team.path}/transactions/{transaction.id}"
    pocket = await team.page.server.bank.directory.find("pocket", transaction.pocket_id)
    assert pocket is not None
    return f"{team.path}/customers/{pocket.customer_id}#transactions"


async def _by_id(team: ApiTeam, text: str, kinds: Iterable[Sought]) -> list[Hit]:
    for operation, name, place, kind, scope in kinds:
        if not team.may(scope):
            continue
        with suppress(NotFound):
            await team.api.get(operation, **{name: text})
            return [Hit(text, kind, f"{team.path}/{place}/{text.lower()}")]
    return []
