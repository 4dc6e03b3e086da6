"""The Pockets of a company, and one of them with its value over time."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

import msgspec
from litestar import get

from billfold.accounts.pockets.earnings_routes import get_pocket_earnings, list_pocket_values
from billfold.accounts.pockets.routes import get_pocket, list_own_pockets
from billfold.accounts.pockets.schemas import Pocket
from billfold.accounts.portals.routes import get_funding_instructions, list_portals
from billfold.accounts.portals.schemas import Instruction
from billfold.accounts.transactions.routes import list_own_transactions
from billfold.http.schemas import Amount
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound
from billfold.web.console.charts import line_chart, maturity_ladder
from billfold.web.console.team import InCompany
from billfold.web.page_context import PageResponse, path_id

_PAGE = 30
_RECENT = 6
_FACE_CENTS = 100_00
_SPANS = {"30d": ("30 days", 30), "90d": ("90 days", 90), "1y": ("1 year", 365), "all": ("All", 0)}
_LABELS = {"swift_bic": "SWIFT/BIC"}
_PERIODS: dict[Literal["mtd", "ytd", "all-time"], str] = {
    "mtd": "This month",
    "ytd": "This year",
    "all-time": "Since opening",
}


@get("/companies/{customer_id:str}/pockets")
async def show_pockets(company: InCompany) -> PageResponse:
    """Show a company's Pockets, some at a time."""
    query = company.page.query
    status = query.get("status", "")
    listed = await company.api.get(
        list_own_pockets, limit=_PAGE, offset=query.get("offset"), **{"filter[status]": status}
    )
    return company.render("pockets", pockets=listed, chosen=status, size=_PAGE)


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}")
async def show_pocket(company: InCompany, pocket_id: str) -> PageResponse:
    """Show one Pocket."""
    key, api = path_id(pocket_id, "There is no such Pocket."), company.api
    pocket: Pocket = await api.get(get_pocket, pocket_id=key)
    span = company.page.query.get("span", "90d")
    held = pocket.portfolio.securities if pocket.portfolio else []
    values = (await api.get(list_pocket_values, pocket_id=key, date_from=_first_day(company, span))).items
    earned = [
        (period, label, await api.get(get_pocket_earnings, pocket_id=key, period=period))
        for period, label in _PERIODS.items()
    ]
    return company.render(
        "pocket",
        pocket=pocket,
        per_second=_appreciation(pocket),
        ladder=maturity_ladder([(each.maturity_date, each.quantity * _FACE_CENTS) for each in held]),
        values=values,
        chart=line_chart([each.total_value.value for each in values]),
        spans=[(name, label) for name, (label, _) in _SPANS.items()],
        span=span,
        earned=earned,
        portals=(await api.get(list_portals, pocket_id=key, limit=_PAGE)).items,
        recent=(await api.get(list_own_transactions, limit=_RECENT, **{"pocket[]": key})).items,
    )


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}/portals/{portal_id:str}")
async def show_funding_instructions(company: InCompany, pocket_id: str, portal_id: str) -> PageResponse:
    """Show how to pay into a portal, to be printed or sent to the payer."""
    key = path_id(pocket_id, "There is no such Pocket.")
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
