"""Cards and ACH entries of all customers of a partner, the newest first."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from litestar import get

from billfold.accounts.customers.routes import list_customers
from billfold.ledger.types import Direction
from billfold.payments.ach.routes import STATUSES, list_ach_originations
from billfold.payments.cards.routes.cards import list_cards
from billfold.payments.cards.types import CardStatus
from billfold.web.console.lists import read_listing
from billfold.web.console.partner import InPartner, Partner
from billfold.web.page_context import PageResponse
from billfold.web.partners.customers import name_of

_PAGE = 30
_ACH_FILTERS = {"status": "filter[status]", "direction": "direction", "returned": "returned"}
_CARD_FILTERS = {"status": "filter[status]"}


@get("/partners/{slug:str}/ach")
async def show_ach_entries(partner: InPartner) -> PageResponse:
    """Show ACH entries with their returns."""
    listing = await read_listing(partner, list_ach_originations, _ACH_FILTERS, limit=_PAGE)
    return partner.render(
        "partner_ach",
        wrong=listing.wrong,
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
        "partner_cards",
        wrong=listing.wrong,
        listing=listing,
        names=await _names(partner, listing.rows.items),
        states=_choices(CardStatus),
    )


async def _names(partner: Partner, rows: Iterable[Any]) -> dict[UUID, str]:
    """Return the names of the customers whose rows these are: of as many as a page has."""
    wanted = sorted({each.customer_id for each in rows})
    if not wanted:
        return {}
    found = await partner.api.get(list_customers, **{"customer_id[]": wanted, "limit": _PAGE})
    return {each.id: name_of(each) for each in found.items}


def _choices(statuses: Iterable[str]) -> list[tuple[str, str]]:
    return [(str(each), str(each).replace("_", " ").capitalize()) for each in sorted(statuses)]
