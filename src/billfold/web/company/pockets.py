"""The Pockets of a company: opened, renamed, closed, with their portals; and one of them with its value over time."""

import asyncio
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import msgspec
from litestar import get, post
from msgspec import UNSET

from billfold.accounts.holds.commands import ACTIVE_MAX, DURATION, DURATION_MAX
from billfold.accounts.holds.routes import list_holds, place_hold, release_hold
from billfold.accounts.pockets.earnings_routes import get_pocket_earnings, list_pocket_values
from billfold.accounts.pockets.overview import days_between, overview_of, values_by_day
from billfold.accounts.pockets.routes import create_pocket, get_pocket, list_own_pockets, update_pocket
from billfold.accounts.pockets.schemas import Pocket
from billfold.accounts.pockets.store import list_by_id
from billfold.accounts.portals.commands import WalletSource
from billfold.accounts.portals.routes import (
    CRYPTO_TYPE,
    create_portal,
    get_funding_instructions,
    list_portals,
    update_portal,
)
from billfold.accounts.portals.schemas import Instruction
from billfold.accounts.transactions.routes import list_own_transactions
from billfold.bills.rules.market import Market
from billfold.bills.rules.strategies import STRATEGIES, Strategy
from billfold.bills.types import Bill
from billfold.http.schemas import Amount
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound
from billfold.web.console.charts import line_chart, maturity_ladder
from billfold.web.console.lists import list_choices
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import body_of, cents_of, instant_in_zone
from billfold.web.page_context import FormError, PageResponse, path_id, redirect, shown_again

_PAGE = 30
_RECENT = 6
_FACE_CENTS = 100_00
_SPANS = {"30d": ("30 days", 30), "90d": ("90 days", 90), "1y": ("1 year", 365), "all": ("All", 0)}
_SPARK_DAYS, _SPARK_POINTS = 30, 15
_ONE = "/companies/{customer_id:str}/pockets/{pocket_id:str}"
_SCOPE = "pockets.write"
_HOLDS = "transfers.write"
_EASTERN = "America/New_York"
_DAY = timedelta(days=1)
_NO_SUCH = "There is no such Pocket."
_LABELS = {"swift_bic": "SWIFT/BIC"}
_PERIODS: dict[Literal["mtd", "ytd", "all-time"], str] = {
    "mtd": "This month",
    "ytd": "This year",
    "all-time": "Since opening",
}


@get("/companies/{customer_id:str}/pockets")
async def show_pockets(company: InCompany) -> PageResponse:
    """Show a company's Pockets, some at a time."""
    query, bank = company.page.query, company.page.server.bank
    status, past = query.get("status", ""), company.look_back()
    listed = await company.api.get(
        list_own_pockets, limit=_PAGE, offset=query.get("offset"), **{"filter[status]": status}
    )
    now = past.at or company.clock.now
    rows = await list_by_id(bank.pool, [(company.customer_id, each.id) for each in listed.items], past.at)
    today = et_date(now)
    days = days_between(today - timedelta(days=_SPARK_DAYS), today, at_most=_SPARK_POINTS)
    return company.render(
        "pockets",
        whole=overview_of(bank, rows, now) if listed.count == len(rows) else None,
        pockets=listed,
        chosen=status,
        size=_PAGE,
        overviews={row.pocket_id: overview_of(bank, [row], now) for row in rows},
        sparks={key: line_chart(values) for key, values in (await values_by_day(bank, rows, days, now)).items()},
    )


async def _show_new(company: Company, wrong: FormError = "") -> PageResponse:
    company.require(_SCOPE)
    market, now = company.page.server.bank.market, company.clock.now
    return company.render(
        "pocket_new",
        wrong=wrong,
        given=company.page.form,
        strategies=[_offer(market, each, now) for each in STRATEGIES],
    )


class Offer(NamedTuple):
    """A strategy, the bill that it buys now and its yield as a fraction; None without such a bill."""

    id: str
    bill: Bill | None = None
    yield_to_maturity: str = ""


def _offer(market: Market, strategy: Strategy, now: datetime) -> Offer:
    try:
        bill = market.on_the_run(strategy.maturity_weeks, et_date(now))
    except NotFound:
        return Offer(strategy.id)
    return Offer(strategy.id, bill, market.tick_prices(now)[bill.cusip].yield_to_maturity)


@get("/companies/{customer_id:str}/pockets/new")
async def show_new_pocket(company: InCompany) -> PageResponse:
    """Show the form of a new Pocket."""
    return await _show_new(company)


@post("/companies/{customer_id:str}/pockets/new")
@shown_again(_show_new, unless="forbidden")
async def open_pocket(company: InCompany) -> PageResponse:
    """Open a Pocket."""
    company.require(_SCOPE)
    page = company.page
    then = None if page.form.get("then") == "cash" else UNSET
    body = body_of(create_pocket.body, page.form, reinvestment_strategy_id=then)
    made = await company.api.send(create_pocket, body, key=page.form_key)
    return redirect(f"{company.path}/pockets/{made.id}", done="pocket-opened")


async def _show_settings(company: Company, pocket_id: str, wrong: FormError = "") -> PageResponse:
    company.require(_SCOPE)
    key = path_id(pocket_id, _NO_SUCH)
    wallets = company.page.server.bank.ports.get(WalletSource)
    return company.render(
        "pocket_settings",
        wrong=wrong,
        pocket=await company.api.get(get_pocket, pocket_id=key, omit="PORTFOLIO"),
        portals=(await company.api.get(list_portals, pocket_id=key, limit=_PAGE)).items,
        chains=wallets.chains if wallets else (),
        given=company.page.form,
    )


@get(f"{_ONE}/settings")
async def show_settings(company: InCompany, pocket_id: str) -> PageResponse:
    """Show what can be changed in a Pocket."""
    return await _show_settings(company, pocket_id)


@post(f"{_ONE}/settings")
@shown_again(_show_settings, unless="forbidden")
async def change_pocket(company: InCompany, pocket_id: str) -> PageResponse:
    """Rename a Pocket or close it; add a portal or close one."""
    company.require(_SCOPE)
    form, key = company.page.form, path_id(pocket_id, _NO_SUCH)
    change, name = form.get("change", ""), form.get("name", "").strip()
    names: dict[str, Any] = {"pocket_id": key}
    if change == "close-portal":
        names["portal_id"] = path_id(form.get("portal", ""), "There is no such portal.")
    chain = form.get("chain")
    operation, body, done = {
        "rename": (update_pocket, {"pocket_name": name}, "pocket-renamed"),
        "close": (update_pocket, {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}, "pocket-closed"),
        "add-portal": (
            create_portal,
            {"name": name} | ({"type": CRYPTO_TYPE, "chain": chain} if chain else {}),
            "portal-added",
        ),
        "close-portal": (update_portal, {"status": "CLOSED"}, "portal-closed"),
    }.get(change, (None, {}, ""))
    if operation is None:
        raise NotFound("There is no such change.")
    await company.api.send(operation, body, key=company.page.form_key, **names)
    return redirect(f"{company.path}/pockets/{key}{'' if change == 'close' else '/settings'}", done=done)


@get(_ONE)
async def show_pocket(company: InCompany, pocket_id: str) -> PageResponse:
    """Show one Pocket, or as of the close of the day `as_of`."""
    if company.look_back().day is None:
        return await _show_pocket(company, pocket_id, company.look_back().wrong)
    try:
        return await _show_pocket_as_of(company, pocket_id)
    except NotFound:
        company.past = company.api.as_of = None
        return await _show_pocket(company, pocket_id, NotFound("The Pocket was not open yet on that day."))


async def _show_pocket_as_of(company: Company, pocket_id: str) -> PageResponse:
    key, api = path_id(pocket_id, _NO_SUCH), company.api
    pocket: Pocket = await api.get(get_pocket, pocket_id=key)
    return company.render(
        "pocket_as_of",
        pocket=pocket,
        earned=[
            (label, await api.get(get_pocket_earnings, pocket_id=key, period=period))
            for period, label in _PERIODS.items()
        ],
        holds=(await api.get(list_holds, pocket_id=key, limit=ACTIVE_MAX, **{"filter[status]": "ACTIVE"})).items,
        portals=(await api.get(list_portals, pocket_id=key, limit=_PAGE)).items,
        recent=(await api.get(list_own_transactions, limit=_PAGE, **{"pocket[]": key})).items,
        names=await list_choices(company, [key]),
    )


async def _show_pocket(company: Company, pocket_id: str, wrong: FormError = "") -> PageResponse:
    key, api = path_id(pocket_id, _NO_SUCH), company.api
    pocket: Pocket = await api.get(get_pocket, pocket_id=key)
    span = company.page.query.get("span", "90d")
    since = _first_day(company, span)
    held = pocket.portfolio.securities if pocket.portfolio else []
    bank = company.page.server.bank
    rows, values, holds, portals, recent, *earned = await asyncio.gather(
        list_by_id(bank.pool, [(company.customer_id, key)]),
        api.get(list_pocket_values, pocket_id=key, date_from=since),
        api.get(list_holds, pocket_id=key, limit=ACTIVE_MAX, **{"filter[status]": "ACTIVE"}),
        api.get(list_portals, pocket_id=key, limit=_PAGE),
        api.get(list_own_transactions, limit=_RECENT, **{"pocket[]": key}),
        *(api.get(get_pocket_earnings, pocket_id=key, period=period) for period in _PERIODS),
    )
    return company.render(
        "pocket",
        wrong=wrong,
        given=company.page.form,
        holds=holds.items,
        hold_days=[et_date(company.clock.now) + each for each in (timedelta(0), DURATION, DURATION_MAX - _DAY)],
        pocket=pocket,
        today=et_date(company.clock.now),
        last_day=et_date(company.clock.now) - _DAY,
        overview=overview_of(bank, rows, company.clock.now),
        per_second=_appreciation(pocket),
        ladder=maturity_ladder([(each.maturity_date, each.quantity * _FACE_CENTS) for each in held]),
        values=values.items,
        chart=line_chart([each.total_value.value for each in values.items]),
        spans=[(name, label) for name, (label, _) in _SPANS.items()],
        span=span,
        earned=[(*named, each) for named, each in zip(_PERIODS.items(), earned, strict=True)],
        portals=portals.items,
        recent=recent.items,
        names=await list_choices(company, []),
    )


@post(f"{_ONE}/holds")
@shown_again(_show_pocket, unless="forbidden")
async def change_holds(company: InCompany, pocket_id: str) -> PageResponse:
    """Place a hold on a Pocket until the end of a day, or release one."""
    company.require(_HOLDS)
    form, form_key, key = company.page.form, company.page.form_key, path_id(pocket_id, _NO_SUCH)
    if "hold" in form:
        hold_id = path_id(form["hold"], "There is no such hold.")
        await company.api.send(release_hold, {}, key=form_key, pocket_id=key, hold_id=hold_id)
    else:
        body = {
            "amount_usdc": cents_of("amount_usdc", form.get("amount_usdc", "")),
            "reason": form.get("reason", ""),
            "expires_at": instant_in_zone("expires_at", f"{form.get('expires_at', '')}T23:59:59", _EASTERN),
        }
        await company.api.send(place_hold, body, key=form_key, pocket_id=key)
    return redirect(f"{company.path}/pockets/{key}", done="hold-released" if "hold" in form else "money-held")


@get(f"{_ONE}/portals/{{portal_id:str}}")
async def show_funding_instructions(company: InCompany, pocket_id: str, portal_id: str) -> PageResponse:
    """Show how to pay into a portal, to be printed or sent to the payer."""
    key = path_id(pocket_id, _NO_SUCH)
    portal = path_id(portal_id, "There is no such portal.")
    found = await company.api.get(get_funding_instructions, pocket_id=key, portal_id=portal)
    return company.render(
        "funding_instructions",
        pocket=await company.api.get(get_pocket, pocket_id=key, omit="PORTFOLIO"),
        portal_id=portal,
        methods=[(each.__struct_config__.tag, _labelled(each)) for each in found.instructions],
    )


def _first_day(company: InCompany, span: str) -> date | None:
    if span not in _SPANS:
        raise NotFound("There is no such period.")
    _, days = _SPANS[span]
    return et_date(company.clock.now) - timedelta(days=days) if days else None


def _appreciation(pocket: Pocket) -> Decimal:
    slope = pocket.portfolio.appreciation_per_second if pocket.portfolio else None
    return Decimal(slope or 0)


def _labelled(instruction: Instruction) -> list[tuple[str, str]]:
    """Return the non-empty fields of an instruction, by their names."""
    fields = msgspec.structs.asdict(instruction)
    texts = {name: each.formatted if isinstance(each, Amount) else each for name, each in fields.items()}
    return [(_LABELS.get(name, name.replace("_", " ").capitalize()), text) for name, text in texts.items() if text]
