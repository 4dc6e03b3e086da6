"""Statements and tax forms: the list, filtered by the address, and each as a PDF."""

from litestar import get

from billfold.platform.errors import NotFound
from billfold.reports.statements.routes import list_customer_statements
from billfold.reports.statements.store import StatementType
from billfold.web.console.company import InCompany
from billfold.web.console.listing import list_choices, read_listing
from billfold.web.page_context import PageResponse, path_id, redirect

_PAGE = 30
_OF_ONE_MONTH = 100
_FILTERS = {"pocket": "account[]", "type": "type[]", "period": "key"}


@get("/companies/{customer_id:str}/statements")
async def show_statements(company: InCompany) -> PageResponse:
    """Show statements, the newest first."""
    listing = await read_listing(company, list_customer_statements, _FILTERS, limit=_PAGE)
    shown = [each.service_account_id for each in listing.rows.items]
    return company.render(
        "statements",
        wrong=listing.wrong,
        listing=listing,
        names=await list_choices(company, shown, listing.filters.get("pocket", "")),
        types=[str(each) for each in StatementType],
        keys_url=keys_url(company),
    )


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}/statements/{period:str}/{statement_id:str}")
async def download_statement(company: InCompany, pocket_id: str, period: str, statement_id: str) -> PageResponse:
    """Lead to a statement, a PDF. The API lists it with an address that is new each time, and lives ten minutes."""
    filters = {"account[]": path_id(pocket_id), "key": period}
    listed = await company.api.get(list_customer_statements, **filters, limit=_OF_ONE_MONTH)
    key = path_id(statement_id)
    found = next((each.pdf_download_url for each in listed.items if each.id == key), None)
    if found is None:
        raise NotFound("There is no such statement.")
    return redirect(found)


def keys_url(company: InCompany) -> str:
    """Return where the keys are that documents are verified with."""
    return f"{company.page.server.bank.settings.customer_origin}/.well-known/document-keys.json"
