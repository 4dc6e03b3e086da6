"""The first page of an operator: what waits for people, what fails and who looks after it."""

from litestar import get, post

from billfold.monitoring.alerts import list_owners, put_down_alert, take_alert
from billfold.monitoring.health import check_bank, count_waiting, list_claims, read_lags
from billfold.onboarding.review_queue import list_waiting
from billfold.payments.liquidity.store import read_reserve
from billfold.platform.errors import InvalidInput
from billfold.reports.proofs.roots.store import find_root
from billfold.verify.runner import find_last_verification
from billfold.web.console.team import BankPage, InBank
from billfold.web.operators.reviews import SHOWN_MAX
from billfold.web.page_context import FormError, PageResponse, redirect, shown_again

_PAGES = {"rail files": "rails", "trading desk": "desk", "settlement": "settlement", "liquidity": "liquidity"}
"""Where a check that fails is worked on, below /bank."""


async def _show(operator: BankPage, wrong: FormError = "") -> PageResponse:
    bank = operator.bank
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        checks = await check_bank(conn, bank.settings, bank.market)
        lags = await read_lags(conn, now=operator.clock.now, wall=operator.page.now)
        verified, root = await find_last_verification(conn), await find_root(conn)
        claims, owners = await list_claims(conn, operator.page.now), await list_owners(conn)
        reserve, waiting = await read_reserve(conn, bank, operator.clock.now), await count_waiting(conn)
    reviews = await list_waiting(bank, SHOWN_MAX)
    return operator.render(
        "bank_health",
        wrong=wrong,
        pages=_PAGES,
        reserve=reserve,
        reviews=reviews,
        reviews_max=SHOWN_MAX,
        waiting=waiting,
        owners=owners,
        business_date=bank.calendars.business_date(operator.clock.now),
        checks=checks,
        failing=[each for each in checks if each.next_step],
        lags=lags,
        verified=verified,
        root=root,
        claims=claims,
    )


@get("/bank")
async def show_health(operator: InBank) -> PageResponse:
    """Show what waits for a decision, the doctor's checks, late and running work, and the last verification."""
    return await _show(operator)


@post("/bank")
@shown_again(_show)
async def own_alert(operator: InBank) -> PageResponse:
    """Take a check that fails, or put it down."""
    bank, form = operator.bank, operator.page.form
    operator.by.require_any()
    async with bank.pool.acquire() as conn:
        names = {each.what for each in await check_bank(conn, bank.settings, bank.market)}
    change = {"take": take_alert, "put-down": put_down_alert}.get(form.get("decision", ""))
    if change is None or form.get("alert") not in names:
        raise InvalidInput.at("decision", msg="must be chosen")
    await change(bank, form["alert"], by=operator.by)
    return redirect("/bank", done="saved")
