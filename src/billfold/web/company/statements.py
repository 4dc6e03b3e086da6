"""Statements and tax forms, daily roots and the proof of a balance."""

import asyncio
import re
from collections.abc import Mapping
from io import BytesIO
from urllib.parse import urlsplit
from uuid import UUID
from zipfile import ZipFile

import msgspec
from litestar import Response, get

from billfold.pages.theme import page_headers
from billfold.platform.errors import NotFound, Refused
from billfold.reports.downloads import get_file, read_file
from billfold.reports.proofs.roots.types import DailyRoot
from billfold.reports.proofs.signatures import payload_of
from billfold.reports.routes import get_daily_proof, get_root_of
from billfold.reports.statements.routes import list_customer_statements
from billfold.reports.statements.store import StatementType
from billfold.web.console.lists import list_choices, names_of_pockets, read_listing
from billfold.web.console.team import InCompany, read_page_clock
from billfold.web.page_context import PUBLIC, PageContext, PageResponse, path_id, redirect

_PAGE = 30
_OF_ONE_MONTH = 100
_UNSAFE = re.compile(r"[^\w .-]+")
"""What a name of a folder has on no system."""
_FILTERS = {"pocket": "account[]", "type": "type[]", "period": "key"}


@get("/companies/{customer_id:str}/statements")
async def show_statements(company: InCompany) -> PageResponse:
    """Show statements, the newest first."""
    company.look_back()
    listing = await read_listing(company, list_customer_statements, _FILTERS, limit=_PAGE)
    shown = [each.service_account_id for each in listing.rows.items]
    return company.render(
        "statements",
        listing=listing,
        names=await list_choices(company, shown, listing.filters.get("pocket", "")),
        types=[str(each) for each in StatementType],
        keys_url=keys_url(company),
    )


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}/statements/{period:str}/{statement_id:str}")
async def download_statement(company: InCompany, pocket_id: str, period: str, statement_id: str) -> PageResponse:
    """Redirect to a statement, a PDF. The API lists it with a new address each time, which is valid for ten minutes."""
    filters = {"account[]": path_id(pocket_id), "key": period}
    listed = await company.api.get(list_customer_statements, **filters, limit=_OF_ONE_MONTH)
    key = path_id(statement_id)
    found = next((each.pdf_download_url for each in listed.items if each.id == key), None)
    if found is None:
        raise NotFound("There is no such statement.")
    return redirect(found)


@get("/companies/{customer_id:str}/statements/{period:str}/all.zip")
async def download_period(company: InCompany, period: str) -> PageResponse:
    """Return the statements of a month or a year as one file, in a folder for each Pocket."""
    page = await company.api.get(list_customer_statements, key=period, limit=_OF_ONE_MONTH)
    listed = page.items
    if not listed:
        raise NotFound("There is no such statement.")
    if page.next_page:
        raise Refused("payload-too-large", f"There are more than {_OF_ONE_MONTH} statements: fetch them by the API.")
    names, bank = (
        await names_of_pockets(company, [each.service_account_id for each in listed]),
        company.page.server.bank,
    )
    files = {}
    for each in listed:
        file_id = UUID(urlsplit(each.pdf_download_url).path.rpartition("/")[2])
        file = await get_file(bank.pool, company.customer_id, file_id)
        folder = _UNSAFE.sub("-", names[str(each.service_account_id)])
        files[f"{folder} {str(each.service_account_id)[:8]}/{each.version} {file.name}"] = await read_file(bank, file)
    headers = {"content-disposition": f'attachment; filename="statements-{period}.zip"', **page_headers()}
    return Response(await asyncio.to_thread(_zipped, files), media_type="application/zip", headers=headers)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    whole = BytesIO()
    with ZipFile(whole, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


def keys_url(company: InCompany) -> str:
    """Return the address of the keys that verify documents."""
    return f"{company.page.server.bank.settings.customer_origin}/.well-known/document-keys.json"


@get("/proofs/{day:str}", opt=PUBLIC)
async def show_daily_root(day: str, page: PageContext) -> PageResponse:
    """Show the bank's signed root of a day, or the latest, and how anybody can check it."""
    stored = await get_root_of(page.pool, day)
    settings = page.server.bank.settings
    return page.render(
        "daily_root",
        clock=await read_page_clock(page),
        root=payload_of(stored.jws, DailyRoot),
        companies=await page.memberships() if page.is_signed_in else [],
        published_at=f"{settings.customer_origin}/.well-known",
    )


@get("/companies/{customer_id:str}/proofs/{day:str}/proof.json")
async def download_proof(company: InCompany, day: str) -> PageResponse:
    """Return the proof of a company's balance at the close of a day, as a file."""
    proof = await company.api.get(get_daily_proof, day=day)
    headers = {"content-disposition": 'attachment; filename="proof.json"', **page_headers()}
    return Response(msgspec.json.encode(proof), media_type="application/json", headers=headers)
