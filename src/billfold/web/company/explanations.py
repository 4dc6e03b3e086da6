"""Pages that explain an amount: of a Pocket, of all, of earnings, of a price; and statuses, dates, refusals, limits."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlencode

from litestar import get
from msgspec import UNSET

from billfold.accounts.explain.routes import (
    explain_earnings,
    explain_pocket,
    explain_security_price,
    explain_total_of_pockets,
)
from billfold.accounts.explain.schemas import Explained, Explanation, Input, Row, RowKind, Step, Unit
from billfold.accounts.pockets.routes import get_pocket
from billfold.explanations import routes
from billfold.explanations.limits import LABELS
from billfold.http.operations import Operation
from billfold.platform.dates import format_day, format_moment
from billfold.platform.errors import NotFound
from billfold.web.console.spoken_formulas import spoken
from billfold.web.console.team import AS_OF, InCompany
from billfold.web.page_context import PageResponse, path_id

_PARTS_MAX = 30
INPUTS_MAX = 50
_UNITS = {
    Unit.CENTS: "cents",
    Unit.CENTS_PER_SECOND: "cents per second",
    Unit.USD_PER_100: "dollars per $100",
    Unit.PERCENT: "%",
    Unit.FRACTION: "",
    Unit.UNITS: "bills",
    Unit.COUNT: "",
    Unit.DAYS: "days",
    Unit.SECONDS: "seconds",
    Unit.BASIS_POINTS: "basis points",
    Unit.FEE_UNITS: "fee units",
}


class Reader(NamedTuple):
    """The reader of an explanation: the base of the company's pages, the owner of the Pocket, the time zone."""

    base: str
    pocket_id: str
    zone: str


class ShownRow(NamedTuple):
    """A row that an amount is derived from. Without a separate page it has no `path`."""

    label: str
    path: str
    facts: str
    amount: str


class ShownValue(NamedTuple):
    """An input, or a step with its formula."""

    symbol: str
    label: str
    value: str
    formula: str
    spoken: str
    rounding: str
    rows: list[ShownRow]


class Outline(NamedTuple):
    """An explanation, or the head of one (`is_whole` false) that has a separate page, under `place`."""

    place: str
    symbol: str
    label: str
    value: str
    words: str
    steps: list[ShownValue]
    inputs: list[ShownValue]
    more_inputs: int
    parts: list[Outline]
    rows: list[ShownRow]
    more_rows: bool
    is_whole: bool


def part_at(whole: Explanation, place: str) -> Explanation:
    """Return the part at a position like "2.0": the first part of the third. Raises NotFound."""
    found = whole
    for each in filter(None, place.split(".")):
        if not (each.isascii() and each.isdigit() and len(each) <= 4 and int(each) < len(found.parts)):  # noqa: PLR2004 - digits
            raise NotFound("The explanation has no such part.")
        found = found.parts[int(each)]
    return found


def outline(found: Explanation, reader: Reader, place: str = "", inputs_from: int = 0) -> Outline:
    """Return the view of an explanation, with the parts of its parts if they are few."""
    depth = next(n for n in (3, 2, 1) if n == 1 or _count_parts(found, n) <= _PARTS_MAX)
    return _outlined(found, reader, place, depth=depth, inputs_from=inputs_from)


def _count_parts(found: Explanation, depth: int) -> int:
    return 1 + sum(_count_parts(each, depth - 1) for each in found.parts) if depth else 1


def _outlined(found: Explanation, reader: Reader, place: str, *, depth: int, inputs_from: int = 0) -> Outline:
    last = inputs_from + INPUTS_MAX
    parts = [
        _outlined(each, reader, f"{place}.{n}".lstrip("."), depth=depth - 1)
        for n, each in enumerate(found.parts if depth else ())
    ]
    return Outline(
        place=place,
        symbol=found.symbol,
        label=LABELS.get(found.label, found.label),
        value=_shown(found, reader),
        words=found.words,
        steps=_steps(found, reader),
        inputs=[_input(each, reader) for each in found.inputs[inputs_from:last]],
        more_inputs=max(0, len(found.inputs) - last),
        parts=parts,
        rows=[_row(each, reader) for each in found.rows],
        more_rows=found.more_rows,
        is_whole=depth > 0 or not found.parts,
    )


def _input(found: Input, reader: Reader) -> ShownValue:
    rows = [_row(each, reader) for each in found.rows]
    return ShownValue(found.symbol, found.label, _shown(found, reader), formula="", spoken="", rounding="", rows=rows)


def _steps(found: Explanation, reader: Reader) -> list[ShownValue]:
    labels: dict[str, list[str]] = {}
    known: list[Input | Explanation] = [*found.inputs, *found.parts]
    for each in known:
        labels.setdefault(each.symbol, []).append(each.label)
    shown = []
    for step in found.steps:
        words = spoken(step.formula, labels) if step.formula else ""
        labels[step.symbol] = [step.label]
        value = _shown(step, reader)
        shown.append(ShownValue(step.symbol, step.label, value, step.formula, words, step.rounding or "", rows=[]))
    return shown


def _shown(given: Explanation | Input | Step, reader: Reader) -> str:
    amount = "" if given.amount is None else given.amount.formatted
    if given.unit == Unit.INSTANT:
        at = format_moment(datetime.fromisoformat(given.value), reader.zone)
        return f"{at}, {amount}" if amount else at
    if amount:
        return amount
    if given.unit == Unit.DATE:
        return format_day(date.fromisoformat(given.value))
    if given.unit == Unit.TEXT:
        return given.value.replace("_", " ").capitalize() if given.value.isupper() else given.value
    is_count = given.unit in {Unit.UNITS, Unit.COUNT, Unit.SECONDS, Unit.FEE_UNITS}
    number = f"{Decimal(given.value):,}" if is_count else given.value
    return f"{number} {_UNITS[Unit(given.unit)]}".strip()


def _row(row: Row, reader: Reader) -> ShownRow:
    facts = [
        f"{row.units:,} bills" if row.units is not UNSET else "",
        f"{row.price} per $100" if row.price is not UNSET else "",
        f"{row.rate} %" if row.rate is not UNSET else "",
        format_day(row.on) if isinstance(row.on, date) else "",
        format_moment(row.at, reader.zone) if isinstance(row.at, datetime) else "",
        f"journal entry {row.entry_no}" if row.entry_no is not UNSET else "",
        row.source or "",
    ]
    amount = "" if row.amount is UNSET else row.amount.formatted
    return ShownRow(row.label, _path(row, reader), ", ".join(filter(None, facts)), amount)


_PAGES = {
    RowKind.POCKET: "pockets",
    RowKind.TRANSACTION: "transactions",
    RowKind.TRANSFER: "explain/transfers",
    RowKind.TRANSFER_REQUEST: "transfer-requests",
    RowKind.WIRE: "explain/wires",
}


def _path(row: Row, reader: Reader) -> str:
    """Return the page of a row: prices, wires and transfers have explanations, others pages of their own."""
    if row.kind == RowKind.PRICE and isinstance(row.at, datetime):
        return f"{reader.base}/securities/{row.cusip}/explain?{urlencode({'at': row.at.isoformat()})}"
    of_pocket = f"pockets/{reader.pocket_id}/trades" if row.kind == RowKind.TRADE and reader.pocket_id else ""
    page = of_pocket or _PAGES.get(RowKind(row.kind), "")
    return f"{reader.base}/{page}/{row.id}" if page else ""


_OF_PAGE = ("part", "inputs", AS_OF)
_STATUSES = {
    "counterparties": (routes.explain_counterparty, "counterparty_id"),
    "holds": (routes.explain_hold, "hold_id"),
    "pockets": (routes.explain_pocket_status, "pocket_id"),
    "trades": (routes.explain_trade, "trade_id"),
    "transactions": (routes.explain_transaction, "transaction_id"),
    "transfer-requests": (routes.explain_transfer_request, "transfer_id"),
    "transfers": (routes.explain_on_us_transfer, "transfer_id"),
    "wires": (routes.explain_wire, "wire_id"),
}
"""Operations that explain the status of something, and the names of its id."""
_IN_POCKET = ("holds", "trades")
"""What needs the `pocket_id` of the query, too."""
_SUBJECTS = {
    "counterparties": "Counterparty",
    "trades": "Trade",
    "transactions": "Transaction",
    "transfer-requests": "Transfer request",
}
"""What has a page of its own."""
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


@get("/companies/{customer_id:str}/explain/{kind:str}/{key:str}")
async def explain_status(company: InCompany, kind: str, key: str) -> PageResponse:
    """Explain the status of something, with its dates, fees and refusals."""
    if kind not in _STATUSES:
        raise NotFound("There is no such page.")
    operation, name = _STATUSES[kind]
    in_pocket = company.page.query.get("pocket_id", "x") if kind in _IN_POCKET else ""
    pocket_id = key if name == "pocket_id" else in_pocket
    names = {} if name == "pocket_id" else {name: path_id(key, "There is no such object.")}
    of = _subject(company.path, kind, key=key, pocket_id=in_pocket)
    return await _page(company, operation, of=of, pocket_id=pocket_id, **names)


def _subject(base: str, kind: str, *, key: str, pocket_id: str) -> tuple[str, str] | None:
    """Return the path of the page of what is explained, and what it is called; None without such a page."""
    label = _SUBJECTS.get(kind)
    path = f"{base}/pockets/{pocket_id}/{kind}/{key}" if pocket_id else f"{base}/{kind}/{key}"
    return (path, label) if label else None


@get("/companies/{customer_id:str}/limits/explain")
async def explain_used_limits(company: InCompany) -> PageResponse:
    """Explain the limits of a company."""
    return await _page(company, routes.explain_limits)


async def _page(
    company: InCompany,
    operation: Operation,
    *,
    of: tuple[str, str] | None = None,
    pocket_id: str = "",
    **names: object,
) -> PageResponse:
    """Show an explanation, or the part of it that the query names."""
    query, pocket = company.page.query, None
    if operation.as_of:
        company.look_back()
    if pocket_id:
        names["pocket_id"] = path_id(pocket_id, "There is no such Pocket.")
        pocket = await company.api.get(get_pocket, omit="PORTFOLIO", pocket_id=names["pocket_id"])
    filters = {name: value for name, value in query.items() if name not in _OF_PAGE}
    explained: Explained = await company.api.get(operation, **{**filters, **names})
    place, begin = query.get("part", ""), _number(query.get("inputs", "0"))
    reader = Reader(company.path, pocket_id, company.page.user.time_zone)
    return company.render(
        "explanation",
        explained=explained,
        pocket=pocket,
        of=of,
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
