"""The page Liquidity: the reserve by hour, the wires that wait for it, and their release by two people."""

from litestar import get, post

from billfold.payments.liquidity.overview import propose_release, read_overview
from billfold.platform.errors import NotFound
from billfold.servicing.lists import names_of
from billfold.web.console.charts import hour_chart
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageResponse, path_id, redirect, shown_again


async def _show_liquidity(operator: BankPage, wrong: FormError = "") -> PageResponse:
    overview = await read_overview(operator.bank)
    return operator.render(
        "bank_liquidity",
        wrong=wrong,
        overview=overview,
        names=await names_of(operator.bank.pool, {each.customer_id for each in overview.waiting}),
        chart=hour_chart([hour.balance for hour in overview.hours], overview.floor),
        dealer_limit=operator.bank.settings.dealer_limit_cents,
        day_limit=operator.bank.settings.wires_day_limit_cents,
        given=operator.page.form if wrong else {},
    )


@get("/bank/liquidity")
async def show_liquidity(operator: InBank) -> PageResponse:
    """Show the reserve by hour, and what waits."""
    return await _show_liquidity(operator)


@post("/bank/liquidity", opt=RECENT_AUTHENTICATION)
@shown_again(_show_liquidity, NotFound)
async def release_wire(operator: InBank) -> PageResponse:
    """Propose to let a waiting wire leave below the floor."""
    form = operator.page.form
    wire_id = path_id(form.get("wire_id", ""))
    await propose_release(operator.bank, wire_id, reason=form.get("reason", ""), by=operator.by)
    return redirect("/bank/freezes", done="freeze-proposed")
