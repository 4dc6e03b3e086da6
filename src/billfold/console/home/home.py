"""The first page of a company: what it is worth now, what is available, what falls due, what waits."""

from __future__ import annotations

from decimal import Decimal

from litestar import get

from billfold.access.pages.team.administrator import memberships
from billfold.accounts.pockets.routes import list_own_pockets
from billfold.accounts.pockets.schemas import Pocket
from billfold.accounts.transactions.routes import list_own_transactions
from billfold.approvals.routes.transfer_requests import list_transfer_requests
from billfold.console.charts import maturity_ladder
from billfold.console.company import InCompany
from billfold.http.schemas import usd
from billfold.pages.page_context import ACCOUNT, PageContext, PageResponse, redirect

_FACE_CENTS = 100_00
_RECENT = 8


@get("/")
async def choose_company(page: PageContext) -> PageResponse:
    """Lead to the visitor's company, or to the list of all."""
    found = await memberships(page)
    to = f"/companies/{found[0].customer_id}" if found else ACCOUNT
    return redirect(to, done=page.query.get("done", ""))


@get("/companies/{customer_id:str}")
async def show_home(company: InCompany) -> PageResponse:
    """Show a company's value and what needs attention."""
    pockets: list[Pocket] = (await company.api.get(list_own_pockets, limit=100)).items
    held = [each.portfolio for each in pockets if each.portfolio is not None]
    face = [(bill.maturity_date, bill.quantity * _FACE_CENTS) for each in held for bill in each.securities]
    waiting = await company.api.get(list_transfer_requests, status="PENDING", limit=_RECENT)
    recent = await company.api.get(list_own_transactions, limit=_RECENT)
    return company.render(
        "home",
        pockets=pockets,
        total=usd(sum(each.total_value.value for each in held)),
        today=usd(sum(each.liquidation_value_t0.value for each in held)),
        tomorrow=usd(sum(each.liquidation_value_t1.value for each in held)),
        per_second=sum((Decimal(each.appreciation_per_second or 0) for each in held), Decimal(0)),
        ladder=maturity_ladder(face)[:_RECENT],
        waiting=waiting.items,
        recent=recent.items,
    )
