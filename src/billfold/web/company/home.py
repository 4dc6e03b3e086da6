"""The first page of a company: its current value, the available amount, maturities, pending requests."""

from decimal import Decimal

from litestar import get

from billfold.accounts.pockets.overview import overview_of
from billfold.accounts.pockets.routes import TotalPortfolio, get_portfolio, list_own_pockets
from billfold.accounts.pockets.store import list_not_closed
from billfold.accounts.transactions.routes import list_own_transactions
from billfold.approvals.transfer_requests_routes import list_transfer_requests
from billfold.web.console.charts import maturity_ladder
from billfold.web.console.team import InCompany
from billfold.web.page_context import ACCOUNT, DONE, PageContext, PageResponse, redirect

_RECENT = 8


@get("/")
async def choose_company(page: PageContext) -> PageResponse:
    """Redirect to the visitor's company, partner or bank; the menu of its name has the others."""
    found = await page.memberships()
    to = found[0].path if found else ACCOUNT
    done = page.query.get("done", "")
    return redirect(to, done=done if done in DONE else "")


@get("/companies/{customer_id:str}")
async def show_home(company: InCompany) -> PageResponse:
    """Show a company's value and what needs attention."""
    pockets = await company.api.get(list_own_pockets, limit=_RECENT)
    total: TotalPortfolio = await company.api.get(get_portfolio)
    face = [(each.maturity_date, each.face_value.value) for each in total.maturities]
    waiting = await company.api.get(list_transfer_requests, status="PENDING", limit=_RECENT)
    recent = await company.api.get(list_own_transactions, limit=_RECENT)
    bank, now = company.page.server.bank, company.clock.now
    rows = await list_not_closed(bank.pool, company.customer_id)
    return company.render(
        "home",
        overview=overview_of(bank, rows, now),
        pockets=pockets.items,
        count=pockets.count,
        total=total,
        per_second=Decimal(total.appreciation_per_second),
        ladder=maturity_ladder(face)[:_RECENT],
        waiting=waiting.items,
        recent=recent.items,
    )
