"""The root of a day as a page that anybody reads, and a company's own proof to check against it."""

from datetime import date

import msgspec
from litestar import Response, get

from billfold.pages.theme import page_headers
from billfold.platform.dates import parse_day
from billfold.platform.errors import NotFound
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.types import DailyRoot
from billfold.reports.proofs.signatures import payload_of
from billfold.reports.routes import get_daily_proof
from billfold.web.console.company import InCompany
from billfold.web.console.page_clock import read_page_clock
from billfold.web.page_context import PUBLIC, PageContext, PageResponse
from billfold.web.team.administrator import memberships

_LATEST = "latest"


@get("/proofs/{day:str}", opt=PUBLIC)
async def show_daily_root(day: str, page: PageContext) -> PageResponse:
    """Show what the bank has signed of a day, or of the latest, and how anybody checks it."""
    stored = await store.get_root(page.pool, None if day == _LATEST else _day(day))
    settings = page.server.bank.settings
    return page.render(
        "daily_root",
        clock=await read_page_clock(page),
        root=payload_of(stored.jws, DailyRoot),
        companies=await memberships(page) if page.is_signed_in else [],
        published_at=f"{settings.customer_origin}/.well-known",
    )


@get("/companies/{customer_id:str}/proofs/{day:str}/proof.json")
async def download_proof(company: InCompany, day: str) -> PageResponse:
    """Return the proof of a company's balance at the close of a day, as a file."""
    proof = await company.api.get(get_daily_proof, day=day)
    headers = {"content-disposition": 'attachment; filename="proof.json"', **page_headers()}
    return Response(msgspec.json.encode(proof), media_type="application/json", headers=headers)


def _day(text: str) -> date:
    try:
        return parse_day(text)
    except ValueError:
        raise NotFound("There is no such day.") from None
