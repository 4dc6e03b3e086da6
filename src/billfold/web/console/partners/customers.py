"""The customers of a partner, and one of them: its Pockets, cards and ACH entries."""

from litestar import get, post

from billfold.accounts.customers.routes import get_customer, list_customers
from billfold.accounts.customers.schemas import Customer
from billfold.accounts.pockets.routes import list_customer_pockets
from billfold.http.raw_request import is_uuid
from billfold.payments.ach.routes import list_customer_ach_originations
from billfold.payments.cards.routes import list_customer_cards, set_card_status
from billfold.platform.errors import InvalidInput, Refused
from billfold.web.console.listing import read_listing
from billfold.web.console.partner import InPartner, Partner
from billfold.web.page_context import Mistake, PageResponse, path_id, redirect

_PATH = "/partners/{slug:str}/customers"
_ONE = f"{_PATH}/{{customer_id:str}}"
_PAGE = 30
_SHOWN = 20
_FILTERS = {"name": "name", "status": "account_status", "type": "type"}
_NOBODY = "There is no such customer."


@get(_PATH)
async def show_customers(partner: InPartner) -> PageResponse:
    """Show customers, the newest first; an id in the place of a name leads to its customer."""
    wanted = partner.page.query.get("name", "").strip()
    if is_uuid(wanted):
        return redirect(f"{partner.path}/customers/{wanted}")
    listing = await read_listing(partner, list_customers, _FILTERS, limit=_PAGE)
    names = {str(each.id): name_of(each) for each in listing.rows.items}
    return partner.render("partner_customers", wrong=listing.wrong, listing=listing, names=names)


@get(_ONE)
async def show_customer(partner: InPartner, customer_id: str) -> PageResponse:
    """Show a customer."""
    return await _show(partner, customer_id)


@post(f"{_ONE}/cards/{{card_id:str}}")
async def change_card(partner: InPartner, customer_id: str, card_id: str) -> PageResponse:
    """Switch a card on or off, or close it."""
    form = partner.page.form
    try:
        await partner.api.send(
            set_card_status,
            {"card_status": form.get("status", "")},
            key=partner.page.form_key,
            account_id=path_id(form.get("pocket_id", "")),
            card_id=path_id(card_id, "There is no such card."),
        )
    except (InvalidInput, Refused) as wrong:
        if wrong.code == "forbidden":
            raise
        return await _show(partner, customer_id, wrong=wrong)
    return redirect(f"{partner.path}/customers/{path_id(customer_id)}#cards", done="saved")


async def _show(partner: Partner, customer_id: str, *, wrong: Mistake = "") -> PageResponse:
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
        entries=await api.get(list_customer_ach_originations, customer_id=key, limit=_SHOWN),
    )


def name_of(customer: Customer) -> str:
    """Return a customer's name in one line."""
    name = customer.name
    return name if isinstance(name, str) else f"{name.first_name} {name.last_name}"
