"""The pages of a partner: customers, applications, cards, ACH entries."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from litestar import get, post

from billfold.accounts.customers.routes import get_customer, list_customers
from billfold.accounts.customers.schemas import Customer
from billfold.accounts.pockets.routes import list_customer_pockets
from billfold.accounts.transactions.routes import list_customer_transactions
from billfold.events.kinds import PARTNER_KINDS
from billfold.events.webhooks.routes import list_subscriptions
from billfold.http.raw_request import is_uuid
from billfold.ledger.types import Direction
from billfold.onboarding.applications.beneficial_owner_routes import list_related_parties
from billfold.onboarding.applications.routes import (
    get_business_application,
    get_individual_application,
    list_application_documents,
    list_business_applications,
    list_individual_applications,
)
from billfold.onboarding.applications.types import ApplicationStatus
from billfold.payments.ach.routes import STATUSES, list_ach_originations, list_customer_ach_originations
from billfold.payments.cards.commands import CardStatus
from billfold.payments.cards.routes import list_cards, list_customer_cards, set_card_status
from billfold.payments.wires.routes import list_wires
from billfold.request_log.routes import list_request_errors
from billfold.servicing.balances import Balance, read_balances
from billfold.web.console.activity import activity_of
from billfold.web.console.lists import read_listing
from billfold.web.console.partner import InPartner, Partner
from billfold.web.page_context import FormError, PageResponse, path_id, redirect, shown_again

_NEWEST = 5
_SUBSCRIPTIONS = 50
_GROUPED = timedelta(hours=24)
_EVENTS = """
SELECT event_id, kind, raised_at FROM event WHERE customer_id = $1 AND kind = ANY($2::text[])
 ORDER BY event_no DESC LIMIT $3
"""


async def _show(partner: Partner, customer_id: str, *, wrong: FormError = "") -> PageResponse:
    key, api = path_id(customer_id, _NOBODY), partner.api
    customer: Customer = await api.get(get_customer, customer_id=key)
    pockets = await api.get(list_customer_pockets, customer_id=key, limit=_SHOWN)
    return partner.render(
        "partner_customer",
        wrong=wrong,
        customer=customer,
        title=name_of(customer),
        pockets=pockets,
        pocket_names={each.id: each.pocket_name for each in pockets.items},
        cards=await api.get(list_customer_cards, customer_id=key, limit=_SHOWN),
        wires=await api.get(list_wires, customer_id=key, limit=_SHOWN),
        events=await partner.page.pool.fetch(_EVENTS, customer.id, PARTNER_KINDS, _NEWEST),
        entries=await api.get(list_customer_ach_originations, customer_id=key, limit=_SHOWN),
        transactions=await api.get(list_customer_transactions, customer_id=key, limit=_SHOWN),
    )


@get("/partners/{slug:str}")
async def show_partner(partner: InPartner) -> PageResponse:
    """Show what customers and programs do, what fails, and what is new."""
    api, since = partner.api, (partner.page.now - _GROUPED).isoformat()
    customers = (await api.get(list_customers, limit=_NEWEST)).items
    return partner.render(
        "partner_home",
        **await activity_of(partner, partner.row.partner_id),
        customers=customers,
        balances=await _balances(partner, customers),
        names={str(each.id): name_of(each) for each in customers},
        applications=(await api.get(list_business_applications, limit=_NEWEST)).items,
        errors=(await api.get(list_request_errors, timestamp_from=since, limit=_NEWEST)).items,
        stopped=[
            each for each in (await api.get(list_subscriptions, limit=_SUBSCRIPTIONS)).items if each.status != "enabled"
        ],
    )


_PATH = "/partners/{slug:str}/customers"
_ONE = f"{_PATH}/{{customer_id:str}}"
_PAGE = 30
_SHOWN = 20
_FILTERS = {"name": "name", "status": "account_status", "type": "type"}
_NOBODY = "There is no such customer."


@get(_PATH)
async def show_customers(partner: InPartner) -> PageResponse:
    """Show customers, newest first; an id in place of a name leads to its customer."""
    wanted = partner.page.query.get("name", "").strip()
    if is_uuid(wanted):
        return redirect(f"{partner.path}/customers/{wanted}")
    listing = await read_listing(partner, list_customers, _FILTERS, limit=_PAGE)
    names = {str(each.id): name_of(each) for each in listing.rows.items}
    return partner.render(
        "partner_customers", listing=listing, names=names, balances=await _balances(partner, listing.rows.items)
    )


@get(_ONE)
async def show_customer(partner: InPartner, customer_id: str) -> PageResponse:
    """Show a customer."""
    return await _show(partner, customer_id)


@post(f"{_ONE}/cards/{{card_id:str}}")
@shown_again(_show, unless="forbidden")
async def change_card(partner: InPartner, customer_id: str, card_id: str) -> PageResponse:
    """Switch a card on or off, or close it."""
    form = partner.page.form
    await partner.api.send(
        set_card_status,
        {"card_status": form.get("status", "")},
        key=partner.page.form_key,
        account_id=path_id(form.get("pocket_id", "")),
        card_id=path_id(card_id, "There is no such card."),
    )
    return redirect(f"{partner.path}/customers/{path_id(customer_id)}#cards", done="saved")


def name_of(customer: Customer) -> str:
    """Return a customer's name in one line."""
    name = customer.name
    return name if isinstance(name, str) else f"{name.first_name} {name.last_name}"


_APPLICATIONS = "/partners/{slug:str}/applications"
_APPLICATION_FILTERS = {"status": "status"}
_NONE = "There is no such application."


@get(_APPLICATIONS)
async def show_applications(partner: InPartner) -> PageResponse:
    """Show applications of businesses, the newest first."""
    return await _list(partner, list_business_applications, kind="business")


@get(f"{_APPLICATIONS}/persons")
async def show_individual_applications(partner: InPartner) -> PageResponse:
    """Show applications of persons, the newest first."""
    return await _list(partner, list_individual_applications, kind="person")


@get(f"{_APPLICATIONS}/{{application_id:str}}")
async def show_application(partner: InPartner, application_id: str) -> PageResponse:
    """Show an application and the requirements that are missing before it can be submitted."""
    key, api = path_id(application_id, _NONE), partner.api
    return partner.render(
        "partner_application",
        application=await api.get(get_business_application, application_id=key),
        people=await api.get(list_related_parties, application_id=key),
        documents=await api.get(list_application_documents, application_id=key),
    )


@get(f"{_APPLICATIONS}/persons/{{application_id:str}}")
async def show_individual_application(partner: InPartner, application_id: str) -> PageResponse:
    """Show the application of a person, and the bank's open requirements."""
    found = await partner.api.get(get_individual_application, application_id=path_id(application_id, _NONE))
    return partner.render("partner_person", application=found, documents=found.documents)


async def _list(partner: InPartner, operation: Any, *, kind: str) -> PageResponse:  # noqa: ANN401 - of either kind
    listing = await read_listing(partner, operation, _APPLICATION_FILTERS, limit=_PAGE)
    return partner.render(
        "partner_applications",
        listing=listing,
        kind=kind,
        states=[(each.value, each.value.replace("_", " ").capitalize()) for each in ApplicationStatus],
    )


_ACH_FILTERS = {"status": "filter[status]", "direction": "direction", "returned": "returned"}
_CARD_FILTERS = {"status": "filter[status]", "as_of": "as_of"}


@get("/partners/{slug:str}/ach")
async def show_ach_entries(partner: InPartner) -> PageResponse:
    """Show ACH entries with their returns."""
    listing = await read_listing(partner, list_ach_originations, _ACH_FILTERS, limit=_PAGE)
    return partner.render(
        "partner_ach",
        listing=listing,
        names=await _names(partner, listing.rows.items),
        states=_choices(STATUSES),
        directions=[(Direction.CREDIT.value, "Out"), (Direction.DEBIT.value, "In")],
    )


@get("/partners/{slug:str}/cards")
async def show_cards(partner: InPartner) -> PageResponse:
    """Show cards."""
    listing = await read_listing(partner, list_cards, _CARD_FILTERS, limit=_PAGE)
    return partner.render(
        "partner_cards", listing=listing, names=await _names(partner, listing.rows.items), states=_choices(CardStatus)
    )


async def _balances(partner: Partner, customers: Iterable[Customer]) -> dict[UUID, Balance]:
    bank, owners = partner.bank, [each.id for each in customers]
    return await read_balances(bank.pool, bank.market, owners, partner.clock.now)


async def _names(partner: Partner, rows: Iterable[Any]) -> dict[UUID, str]:
    """Return the names of the customers of these rows, at most as many as a page has."""
    wanted = sorted({each.customer_id for each in rows})
    if not wanted:
        return {}
    found = await partner.api.get(list_customers, **{"customer_id[]": wanted, "limit": _PAGE})
    return {each.id: name_of(each) for each in found.items}


def _choices(statuses: Iterable[str]) -> list[tuple[str, str]]:
    return [(str(each), str(each).replace("_", " ").capitalize()) for each in sorted(statuses)]
