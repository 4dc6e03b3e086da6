"""Pages that say how an amount came about: of a Pocket, of all, of earnings, of a price."""

from __future__ import annotations

from litestar import get

from billfold.accounts.explain.routes import (
    explain_earnings,
    explain_pocket,
    explain_security_price,
    explain_total_of_pockets,
)
from billfold.accounts.explain.schemas import Explained
from billfold.accounts.pockets.routes import get_pocket
from billfold.web.console.company import InCompany
from billfold.web.console.explain.outline import Reader, outline, part_at
from billfold.http.operations import Operation
from billfold.web.page_context import PageResponse, path_id
from billfold.platform.errors import NotFound

_OF_PAGE = ("part", "inputs")
_DIGITS_MAX = 6


@get("/companies/{customer_id:str}/explain")
async def explain_total(company: InCompany) -> PageResponse:
    """Explain a figure of all Pockets."""
    return await _page(company, explain_total_of_pockets)


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}/explain")
async def explain_figure(company: InCompany, pocket_id: str) -> PageResponse:
    """Explain a figure of a Pocket."""
    return await _page(company, explain_pocket, pocket_id=pocket_id)


@get("/companies/{customer_id:str}/pockets/{pocket_id:str}/earnings/explain")
async def explain_earned(company: InCompany, pocket_id: str) -> PageResponse:
    """Explain a figure of the earnings of a Pocket."""
    return await _page(company, explain_earnings, pocket_id=pocket_id)


@get("/companies/{customer_id:str}/securities/{cusip:str}/explain")
async def explain_price(company: InCompany, cusip: str) -> PageResponse:
    """Explain a price of a bill."""
    return await _page(company, explain_security_price, cusip=cusip)


async def _page(company: InCompany, operation: Operation, *, pocket_id: str = "", cusip: str = "") -> PageResponse:
    """Show an explanation, or the part of it that the address names."""
    query, pocket = company.page.query, None
    names: dict[str, object] = {}
    if pocket_id:
        names["pocket_id"] = path_id(pocket_id, "There is no such Pocket.")
        pocket = await company.api.get(get_pocket, omit="PORTFOLIO", **names)
    if cusip:
        names["cusip"] = cusip
    filters = {name: value for name, value in query.items() if name not in _OF_PAGE}
    explained: Explained = await company.api.get(operation, **{**filters, **names})
    place, begin = query.get("part", ""), _number(query.get("inputs", "0"))
    reader = Reader(company.path, pocket_id, company.page.user.time_zone)
    return company.render(
        "explanation",
        explained=explained,
        pocket=pocket,
        begin=begin,
        shown=outline(part_at(explained.explanation, place), reader, place, begin),
        above=[(each, part_at(explained.explanation, each).label) for each in _places_above(place)],
        query=query,
        here_path=company.page.request.path,
    )


def _places_above(place: str) -> list[str]:
    names = [each for each in place.split(".") if each]
    return [".".join(names[:n]) for n in range(len(names))]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise NotFound("The explanation has no such inputs.")
    return int(text)
