"""The first page of a company: what is to do, its value over time, the available amount, maturities."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from litestar import get

from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.earnings_routes import POCKETS_MAX, DayValue
from billfold.accounts.pockets.overview import days_between, overview_of, values_by_day
from billfold.accounts.pockets.routes import TotalPortfolio, get_portfolio, list_own_pockets
from billfold.accounts.pockets.store import list_not_closed
from billfold.accounts.transactions.routes import list_own_transactions
from billfold.approvals.transfer_requests_routes import list_transfer_requests
from billfold.http.schemas import usd
from billfold.ledger.bank import Bank
from billfold.onboarding.agreements.store import find_unaccepted
from billfold.payments.on_us.reversals.store import list_to_answer
from billfold.platform.dates import et_date, iso_z
from billfold.web.company.approvals.requests import list_waiting
from billfold.web.console.charts import line_chart, maturity_ladder
from billfold.web.console.team import Company, InCompany
from billfold.web.done_messages import DONE
from billfold.web.page_context import ACCOUNT, PageContext, PageResponse, redirect

_RECENT = 8
_TO_DO = 4
_DECIDED = 50
_FAILED_SINCE = timedelta(days=7)
_SPAN, _POINTS = timedelta(days=90), 45


@get("/")
async def choose_company(page: PageContext) -> PageResponse:
    """Redirect to the visitor's company, partner or bank; the menu of its name has the others."""
    found = await page.memberships()
    to = found[0].path if found else ACCOUNT
    done = page.query.get("done", "")
    return redirect(to, done=done if done in DONE else "")


@get("/companies/{customer_id:str}")
async def show_home(company: InCompany) -> PageResponse:
    """Show what is to do, and a company's value."""
    api, bank, past = company.api, company.page.server.bank, company.look_back()
    now = past.at or company.clock.now
    rows = await list_not_closed(bank.pool, company.customer_id, past.at)
    pockets, total, recent, values, to_do = await asyncio.gather(
        api.get(list_own_pockets, limit=_RECENT),
        _portfolio(company),
        api.get(list_own_transactions, limit=_RECENT),
        _value_over_time(bank, rows, now),
        _to_do(company) if past.day is None else _nothing_to_do(),
    )
    face = [(each.maturity_date, each.face_value.value) for each in total.maturities]
    return company.render(
        "home",
        overview=overview_of(bank, rows, now),
        **values,
        **to_do,
        pockets=pockets.items,
        count=pockets.count,
        names={str(each.id): each.pocket_name for each in pockets.items},
        total=total,
        per_second=Decimal(total.appreciation_per_second),
        ladder=maturity_ladder(face)[:_RECENT],
        recent=recent.items,
    )


async def _nothing_to_do() -> dict[str, Any]:
    """Return what is to do on an earlier day: nothing any more."""
    return {"waiting": [], "reversals": [], "to_approve": 0, "failed": [], "agreement_due": False}


async def _portfolio(company: Company) -> TotalPortfolio:
    total: TotalPortfolio = await company.api.get(get_portfolio)
    return total


async def _value_over_time(bank: Bank, rows: Sequence[PocketRow], now: datetime) -> dict[str, Any]:
    """Return the value of all open Pockets by day, and its change since yesterday; nothing for too many Pockets."""
    if not 1 <= len(rows) <= POCKETS_MAX:
        return {"values": [], "chart": None, "change": None}
    today, opened = et_date(now), min(et_date(row.opened_at) for row in rows)
    days = days_between(max(opened, today - _SPAN), today, at_most=_POINTS)
    by_pocket = await values_by_day(bank, rows, [*days, today - timedelta(days=1)], now)
    *totals, yesterday = (sum(each) for each in zip(*by_pocket.values(), strict=True))
    return {
        "values": [DayValue(date=day, total_value=usd(cents)) for day, cents in zip(days, totals, strict=True)],
        "chart": line_chart(totals),
        "change": usd(totals[-1] - yesterday),
    }


async def _to_do(company: Company) -> dict[str, Any]:
    """Return what the visitor may approve, what failed within a week, and whether an agreement is to be accepted."""
    listed, now = list_transfer_requests, company.clock.now
    since = iso_z(now - _FAILED_SINCE)
    waiting, decided = await asyncio.gather(
        list_waiting(company),
        company.api.get(listed, status="APPROVED", time_created_from=since, limit=_DECIDED),
    )
    version = company.page.server.bank.terms.agreements.in_force(et_date(now))
    found = version and await find_unaccepted(company.page.pool, company.page.user.user_id, version)
    mine = [each for each in waiting if each.is_mine]
    answers = company.may("transfers.write")
    return {
        "waiting": mine[:_TO_DO],
        "reversals": await list_to_answer(company.page.pool, company.customer_id, limit=_TO_DO) if answers else [],
        "to_approve": len(mine),
        "failed": [each for each in decided.items if each.transfer.execution_status == "REJECTED"],
        "agreement_due": found == company.customer_id,
    }
