"""Pages generated from the code: problems, events, and the computation of yield. Each is Markdown, like the others.

The figures of yield are computed by the trading functions, for a deposit that the reader chooses.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from billfold.bills.rules import lots, strategies, valuation, yields
from billfold.bills.rules.market import Market
from billfold.bills.types import Bill
from billfold.documentation.site import FormField, Page, Sample, Samples
from billfold.events.schemas import payload_schema
from billfold.events.webhook_openapi import example_delivery
from billfold.ledger.types import EventKind
from billfold.platform.calendars import Calendars
from billfold.platform.dates import ET, et_instant, parse_day
from billfold.platform.errors import Problem
from billfold.platform.money import PRICE_PAR_MICROS, cents_for

PROBLEMS_PATH = "/docs/errors"
_PROBLEM_INDEX = """\
# Errors

An error is a problem document (RFC 9457) with `type`, `title`, `status`, `detail`, `instance`, `code`, `trace_id` and
`retryable`. Its `type` is the address of its page here. Two things are answered otherwise: a request that does not fit
its schema gets 422 with `detail`, a list of `loc`, `msg` and `type`; and the token endpoints answer as RFC 6749 says.

| Code | Status | Title | Retry |
|---|---|---|---|
"""


def problem_index(problems: Iterable[Problem]) -> Page:
    """Return the page that lists all problems by code."""
    rows = "".join(
        f"| [`{each.code}`]({PROBLEMS_PATH}/{each.code}) | {each.status} | {each.title} "
        f"| {'yes' if each.retryable else 'no'} |\n"
        for each in _in_order(problems)
    )
    note = "\n*Retry*: the same request, sent again unchanged, may succeed.\n"
    return Page(path=PROBLEMS_PATH, title="Errors", text=lambda: _PROBLEM_INDEX + rows + note)


def problem_pages(problems: Iterable[Problem]) -> list[Page]:
    """Return a page for each problem, in the order of codes."""
    return [
        Page(
            path=f"{PROBLEMS_PATH}/{each.code}",
            title=each.title,
            text=partial(_problem_text, each),
            kind=str(each.status),
        )
        for each in _in_order(problems)
    ]


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda each: each.code)


def _problem_text(problem: Problem) -> str:
    again = "may succeed when it is sent again" if problem.retryable else "fails when it is sent again"
    return (
        f"# {problem.title}\n\n"
        f"`{problem.code}`, status {problem.status}. The same request {again}.\n\n"
        f"## What it means\n\n{problem.meaning}\n\n"
        f"## What to do\n\n{problem.remedy}\n"
    )


EVENTS_PATH = "/docs/events"
_EVENT_INDEX = """\
# Events

Every type of event, who can subscribe to it, and when it is raised.
[Webhooks and the event stream](/docs/guides/webhooks) explains how to receive them; `GET /api/v1/events/types/`
serves the JSON Schema of each payload.

| Type | For | Raised when |
|---|---|---|
"""


def event_index(kinds: Iterable[EventKind[Any]]) -> Page:
    """Return the page that lists all types of events."""
    rows = "".join(
        f"| [`{each.name}`]({EVENTS_PATH}/{each.name}) | {' and '.join(_readers(each))} | {each.meaning} |\n"
        for each in kinds
    )
    return Page(path=EVENTS_PATH, title="Events", text=lambda: _EVENT_INDEX + rows)


def event_pages(kinds: Iterable[EventKind[Any]]) -> list[Page]:
    """Return a page for each type of event."""
    return [
        Page(
            path=f"{EVENTS_PATH}/{each.name}",
            title=each.name,
            text=partial(_event_text, each),
            samples=partial(_examples, each),
        )
        for each in kinds
    ]


def _readers(kind: EventKind[Any]) -> list[str]:
    return [name for name, sees in (("partners", kind.partner), ("customers", kind.customer)) if sees]


def _event_text(kind: EventKind[Any]) -> str:
    schema = payload_schema(kind)
    fields = "".join(
        f"| `{name}` | {_type_of(field)} | {'yes' if name in schema['required'] else 'no'} |\n"
        for name, field in schema["properties"].items()
    )
    return (
        f"# {kind.name}\n\n{kind.meaning}\n\n"
        f"For {' and '.join(_readers(kind))}. Version {kind.version} of its payload. [Webhooks and the event stream]"
        "(/docs/guides/webhooks) explains the fields of the envelope and the signature of a delivery.\n\n"
        f"## Payload\n\n| Field | Type | Always there |\n|---|---|---|\n{fields}\n"
    )


def _type_of(schema: dict[str, Any]) -> str:
    choices = schema.get("anyOf", [schema])
    names = [" ".join(filter(None, (each.get("type", ""), each.get("format", "")))) for each in choices]
    return " or ".join(names)


def _examples(kind: EventKind[Any]) -> list[Samples]:
    return [
        Samples("Example", [Sample(reader, "json", _delivery(kind, customer=customer))])
        for reader, sees, customer in (
            ("As a partner receives it", kind.partner, False),
            ("As a customer receives it", kind.customer, True),
        )
        if sees
    ]


def _delivery(kind: EventKind[Any], *, customer: bool) -> str:
    return json.dumps(example_delivery(kind, customer=customer), indent=2)


PATH = "/docs/domain/yield"
_TITLE = "How yield is computed"
_CENTS_MIN, _CENTS_MAX = 100_00, 1_000_000_000_00
_HOUR = 9
_ROWS_MAX = 14


@dataclass(frozen=True, kw_only=True)
class Deposit:
    """The deposit to compute: cents invested on a day in a strategy of this many weeks."""

    cents: int = 250_000_00
    on: date = date(2025, 6, 2)
    weeks: int = 4
    mistakes: tuple[str, ...] = ()


def parse_deposit(query: Mapping[str, Sequence[str]]) -> Deposit:
    """Return the deposit of a query; invalid values are replaced by defaults and listed in `mistakes`."""
    market, usual = _market(), Deposit()
    sent = {name: values[-1] for name, values in query.items()}
    cents = _cents(sent.get("amount", "250000"))
    on = _day(sent.get("on", usual.on.isoformat()), market)
    weeks = {str(each): each for each in _terms()}.get(sent.get("weeks", "4"))
    mistakes = {
        f"The amount is a number of dollars from {_usd(_CENTS_MIN)} to {_usd(_CENTS_MAX)}.": cents,
        f"The day lies between {market.first_day} and {market.last_day}.": on,
        "The strategy is one of those in the list.": weeks,
    }
    return Deposit(
        cents=cents or usual.cents,
        on=on or usual.on,
        weeks=weeks or usual.weeks,
        mistakes=tuple(text for text, value in mistakes.items() if value is None),
    )


def yield_page(deposit: Deposit | None = None) -> Page:
    """Return the page for a deposit."""
    deposit = deposit or Deposit()
    choices = [(str(each), f"UST-{each}W") for each in _terms()]
    return Page(
        path=PATH,
        title=_TITLE,
        text=partial(_text, deposit),
        form=[
            FormField("amount", "Deposit in dollars", f"{deposit.cents // 100}.{deposit.cents % 100:02}"),
            FormField("on", "Day", deposit.on.isoformat(), type="date"),
            FormField("weeks", "Strategy", str(deposit.weeks), choices=choices),
        ],
    )


def _cents(text: str) -> int | None:
    try:
        cents = Decimal(text.replace(",", "")) * 100
    except InvalidOperation:
        return None
    return int(cents) if cents.is_finite() and _CENTS_MIN <= cents <= _CENTS_MAX else None


def _day(text: str, market: Market) -> date | None:
    try:
        day = parse_day(text)
    except ValueError:
        return None
    return day if market.first_day <= day <= market.last_day else None


def _terms() -> list[int]:
    return [each.maturity_weeks for each in strategies.list_strategies()]


@cache
def _market() -> Market:
    return Market.packaged(Calendars())


def _text(deposit: Deposit) -> str:
    templates = Environment(
        loader=PackageLoader(__package__ or ""),
        autoescape=False,  # noqa: S701 - Markdown, which is escaped when rendered as HTML
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    templates.filters |= {"usd": _usd, "per_100": _per_100, "percent": _percent}
    return templates.get_template("yield.md").render(title=_TITLE, deposit=deposit, **_figures(deposit))


def _figures(deposit: Deposit) -> dict[str, Any]:
    """Return the figures of the page by name."""
    market = _market()
    nine = et_instant(deposit.on, _HOUR)
    at = nine if market.calendars.is_trading(nine) else market.calendars.next_open(nine)
    bill = market.on_the_run(deposit.weeks, market.calendars.pricing_day(at))
    ask, settles_on = market.ask(bill, at), market.settles_on(at)
    units = lots.affordable_units(deposit.cents, ask)
    cost, par = cents_for(units, ask), cents_for(units, PRICE_PAR_MICROS)
    cash = deposit.cents - cost
    worth = valuation.value_positions([(bill.cusip, units, 0)], cash, 0, market=market, at=at)
    return {
        "at": at.astimezone(ET),
        "bill": bill,
        "prices": _prices(market, bill, at),
        "ask": ask,
        "units": f"{units:,}",
        "cost": cost,
        "cash": cash,
        "worth": worth,
        "position": worth.positions[0],
        "line": [(when, mark, cents_for(units, mark) + cash) for when, mark in _line(market, bill, at)],
        "days": (bill.maturity - settles_on).days,
        "bought": yields.investment_rate(ask, settles_on, bill.maturity),
        "par": par,
        "at_maturity": par + cash,
        "par_price": PRICE_PAR_MICROS,
    }


def _prices(market: Market, bill: Bill, at: datetime) -> list[tuple[str, str, date, int, int, int]]:
    """Return side, use, settlement day, days to maturity, rate and price of each kind of trade."""
    day, settles_on = market.calendars.pricing_day(at), market.settles_on(at)
    bid, ask = market.bid_rate(bill, day), market.ask_rate(bill, day)
    return [
        (side, use, settles, (bill.maturity - settles).days, rate, price)
        for side, use, settles, rate, price in (
            ("ask", "a purchase", settles_on, ask, market.ask(bill, at)),
            ("bid", "a payment today", day, bid, market.t0_bid(bill, at)),
            ("bid", "a sale for tomorrow", settles_on, bid, market.t1_bid(bill, at)),
        )
    ]


def _line(market: Market, bill: Bill, at: datetime) -> list[tuple[date, int]]:
    """Return days until maturity with the accreted price on each, starting from the day of `at`, at the same hour."""
    now, par_at, days = market.mark(bill, at), et_instant(bill.maturity, 0), (bill.maturity - at.date()).days
    instants = [at + timedelta(days=each) for each in range(0, days, max(1, -(-days // _ROWS_MAX)))]
    return [(each.date(), now + round((PRICE_PAR_MICROS - now) * ((each - at) / (par_at - at)))) for each in instants]


def _usd(cents: int) -> str:
    return f"${cents // 100:,}.{cents % 100:02}"


def _per_100(micros: int) -> str:
    return f"{micros // 10**6}.{micros % 10**6:06}"


def _percent(milli: int) -> str:
    return f"{milli // 1000}.{milli % 1000:03} %"
