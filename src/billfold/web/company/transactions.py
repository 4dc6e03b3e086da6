"""The transactions of a company, filtered by the query; as a CSV file; one of them."""

from typing import Any

import msgspec
from litestar import get

from billfold.accounts.pockets.routes import get_pocket
from billfold.accounts.transactions.pages import TYPES
from billfold.accounts.transactions.routes import get_transaction, get_transactions_csv, list_own_transactions
from billfold.accounts.transactions.schemas import Shared
from billfold.payments.wires.commands import WAITING_FOR_FUNDS
from billfold.payments.wires.store import get_wire
from billfold.web.console.lists import list_choices, operation_filters, read_listing
from billfold.web.console.team import InCompany
from billfold.web.page_context import PageResponse, path_id

_PAGE = 30
_FILTERS = {
    "pocket": "pocket[]",
    "type": "type[]",
    "direction": "direction",
    "from": "time_booked_from",
    "to": "time_booked_to",
    "amount_from": "amount_from",
    "amount_to": "amount_to",
    "portal": "portal[]",
    "text": "text",
}
_HIDDEN = frozenset({*Shared.__struct_fields__, "object_type", "portal_id", "counterparty_id"})


@get("/companies/{customer_id:str}/transactions")
async def show_transactions(company: InCompany) -> PageResponse:
    """Show transactions, the newest first."""
    listing = await read_listing(company, list_own_transactions, _FILTERS, limit=_PAGE)
    shown = [each.pocket_id for each in listing.rows.items]
    return company.render(
        "transactions",
        listing=listing,
        names=await list_choices(company, shown, listing.filters.get("pocket", "")),
        types=sorted(TYPES),
    )


@get("/companies/{customer_id:str}/transactions.csv")
async def download_transactions(company: InCompany) -> PageResponse:
    """Download the filtered transactions."""
    filters = operation_filters(company.page.query, _FILTERS)
    return await company.api.download(get_transactions_csv, **filters, columns="people")


@get("/companies/{customer_id:str}/transactions/{transaction_id:str}")
async def show_transaction(company: InCompany, transaction_id: str) -> PageResponse:
    """Show one transaction."""
    key = path_id(transaction_id, "There is no such transaction.")
    found = await company.api.get(get_transaction, transaction_id=key)
    wire_id = getattr(found, "wire_id", None)
    wire = await get_wire(company.page.pool, found.customer_id, wire_id) if wire_id else None
    return company.render(
        "transaction",
        transaction=found,
        kind=found.__struct_config__.tag,
        facts=_facts(found),
        waits_for_funds=wire is not None and wire.reason == WAITING_FOR_FUNDS,
        pocket=await company.api.get(get_pocket, pocket_id=found.pocket_id, omit="PORTFOLIO"),
    )


def _facts(transaction: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - any variant
    """Return the fields of a variant besides the common ones, and its remittance information, by name."""
    own = {name: value for name, value in msgspec.structs.asdict(transaction).items() if name not in _HIDDEN}
    found = {**own, **_flat(transaction.remittance_information)}
    return [
        (name.replace("_", " ").capitalize(), str(value))
        for name, value in found.items()
        if value not in ({}, None, "", False)
    ]


def _flat(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict):
        return {}
    return {name: each for name, each in value.items() if isinstance(each, str | int)}
