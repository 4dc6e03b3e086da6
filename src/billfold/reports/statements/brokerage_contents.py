"""What a monthly brokerage statement says besides its activity: value, holdings, income."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Final, NamedTuple

from billfold.bills.rules.earnings import PocketState
from billfold.bills.rules.market import Market
from billfold.http.schemas import format_price
from billfold.platform.errors import InvariantError
from billfold.platform.money import cents_for, format_usd
from billfold.reports.entries.types import AccountStatement, EntryKind, Holding, Period
from billfold.reports.printing.printing import short_day
from billfold.reports.printing.types import PrintedChart, PrintedColumn, PrintedTable

_UNIT_CENTS: Final = 10_000
_BASE_MARGIN: Final = 0.06
_HOLDINGS: Final = (
    PrintedColumn("CUSIP", grows=True),
    PrintedColumn("Matures"),
    PrintedColumn("Par", "right"),
    PrintedColumn("Price", "right"),
    PrintedColumn("Market value", "right"),
    PrintedColumn("Cost", "right"),
    PrintedColumn("Unrealized", "right"),
    PrintedColumn("Yield", "right"),
)
_INCOME: Final = (
    PrintedColumn("", grows=True),
    PrintedColumn("This month", "right"),
    PrintedColumn("This year", "right"),
)
NOTES: Final = """
Values are at the bid prices of the close of the last business day, struck from the rates that the US Treasury
publishes. The yield is the investment rate (coupon equivalent) at that price. Trades are shown on their trade date,
and their cash with them.

Securities are carried and trades are cleared by the bank named above. The bank is not a member of the Securities
Investor Protection Corporation (SIPC). Treasury bills are obligations of the United States; they are not deposits,
are not insured by the FDIC, and may lose value when sold before maturity.

Report any inaccuracy or discrepancy in this statement promptly to the bank, at the address above. Confirm again in
writing what you reported orally, to protect your rights.
"""


class DayValue(NamedTuple):
    """What a Pocket was worth at the end of a business day, and what its bills had earned that day, in cents."""

    day: date
    value: int
    earned: int


class IncomeStates(NamedTuple):
    """A Pocket at the beginning of the year, of the month, and at its end."""

    year: PocketState
    start: PocketState
    end: PocketState


def day_values(
    market: Market, period: Period, days: Mapping[date, PocketState], states: IncomeStates
) -> list[DayValue]:
    """Return the value at the closing price of every day, from the states at the end of some."""
    state, valued = states.start, []
    for number in range((period.last_day - period.first_day).days + 2):
        day = period.first_day + timedelta(days=number - 1)
        state = states.end if day == period.last_day else days.get(day, state)
        valued.append((day, state, _value(market, day, state)))
    return [
        DayValue(day, value, value - was - _flows(state) + _flows(old))
        for (_, old, was), (day, state, value) in pairwise(valued)
    ]


def summary(statement: AccountStatement, totals: Mapping[EntryKind, int]) -> list[tuple[str, str]]:
    """Return the value at both ends and what changed it."""
    period = statement.period
    kinds = (
        ("Additions", EntryKind.ADDITION),
        ("Subtractions", EntryKind.SUBTRACTION),
        ("Gain or loss of bills", EntryKind.GAIN_LOSS),
        ("Management fees", EntryKind.AUM_FEE),
    )
    return [
        (f"Opening value on {short_day(period.first_day)}", format_usd(statement.opening.value)),
        *((name, format_usd(totals.get(kind, 0))) for name, kind in kinds),
        (f"Closing value on {short_day(period.last_day)}", format_usd(statement.closing.value)),
    ]


def holdings(statement: AccountStatement, costs: Mapping[str, int], market: Market) -> PrintedTable:
    """Return the bills held at the end, and the cash."""
    closing, day = statement.closing, statement.period.last_day
    rows = [
        _holding(each, costs[each.security.cusip], _yield(market, each.security.cusip, day))
        for each in closing.holdings
    ]
    value = sum(each.value for each in closing.holdings)
    cost = sum(costs[each.security.cusip] for each in closing.holdings)
    par = sum(each.units for each in closing.holdings) * _UNIT_CENTS
    cash = ("Cash", "", "", "", format_usd(closing.cash), "", "", "")
    totals = (
        "Total",
        "",
        format_usd(par),
        "",
        format_usd(value + closing.cash),
        format_usd(cost),
        format_usd(value - cost),
        "",
    )
    return PrintedTable(heading=f"Holdings on {short_day(day)}", columns=_HOLDINGS, rows=[*rows, cash], totals=totals)


def income(statement: AccountStatement, states: IncomeStates) -> PrintedTable:
    """Return what was earned in the month and the year. Raises InvariantError when it is not the gain of the bills."""
    unrealised = sum(each.value for each in statement.closing.holdings) - states.end.earnings_basis
    before = sum(each.value for each in statement.opening.holdings) - states.start.earnings_basis
    realised = states.end.realised - states.start.realised
    gained = sum(each.amount for each in statement.gains)
    if realised + unrealised - before != gained:
        raise InvariantError("Realised and unrealised income is not the gain.", realised=realised, gained=gained)
    year = states.end.realised - states.year.realised
    fees, fees_of_year = states.end.fees - states.start.fees, states.end.fees - states.year.fees
    rows = (
        ("Realized on sales and maturities", format_usd(realised), format_usd(year)),
        ("Change of what is not realized", format_usd(unrealised - before), "—"),
        ("Fees", format_usd(-fees), format_usd(-fees_of_year)),
    )
    return PrintedTable(heading="Income", columns=_INCOME, rows=rows)


def charts(statement: AccountStatement, days: Sequence[DayValue]) -> tuple[PrintedChart, ...]:
    """Return the value and the earnings of each day, and what matures next."""
    period = statement.period
    ends = short_day(period.first_day), short_day(period.last_day)
    values, earned = [each.value for each in days], [each.earned for each in days]
    value = PrintedChart(
        title="Value",
        caption=f"{format_usd(min(values))} to {format_usd(max(values))}",
        kind="area",
        points=_between(values),
        ends=ends,
        alt=f"from {format_usd(statement.opening.value)} to {format_usd(statement.closing.value)}.",
        empty="No value",
    )
    earnings = PrintedChart(
        title="Earnings per day",
        caption=f"{format_usd(sum(earned))} in the month",
        kind="bars",
        points=_around(earned),
        base=_base(earned),
        ends=ends,
        alt=f"{format_usd(sum(earned))} in the month.",
        empty="No earnings",
    )
    return value, earnings, _maturities(statement.closing.holdings)


def _maturities(holdings: Iterable[Holding]) -> PrintedChart:
    due: Counter[date] = Counter()
    for each in holdings:
        due[each.security.maturity] += each.units * _UNIT_CENTS
    maturities = sorted(due.items())
    days = [short_day(day) for day, _ in maturities]
    return PrintedChart(
        title="Coming maturities",
        caption=f"{format_usd(due.total())} at par",
        kind="bars",
        points=[cents / max(due.values()) for _, cents in maturities],
        ends=(days[0], days[-1] if len(days) > 1 else "") if days else ("", ""),
        alt=", ".join(f"{format_usd(cents)} on {short_day(day)}" for day, cents in maturities) + ".",
        empty="Nothing is held",
    )


def _flows(state: PocketState) -> int:
    """Return what came in since the Pocket was opened, less what went out and fees."""
    return state.inflow - state.outflow - state.fees


def _value(market: Market, day: date, state: PocketState) -> int:
    return state.cash + sum(cents_for(units, market.closing_mark(cusip, day)) for cusip, units in state.positions)


def _yield(market: Market, cusip: str, day: date) -> str:
    closes_at = market.calendars.closes_at(market.calendars.pricing_day(market.calendars.closes_at(day)))
    return market.tick_prices(closes_at)[cusip].yield_to_maturity


def _holding(each: Holding, cost: int, rate: str) -> tuple[str, ...]:
    bill = each.security
    return (
        bill.cusip,
        f"{short_day(bill.maturity)}, {bill.maturity.year}",
        format_usd(each.units * _UNIT_CENTS),
        format_price(each.price_micros),
        format_usd(each.value),
        format_usd(cost),
        format_usd(each.value - cost),
        f"{Decimal(rate) * 100:.3f} %",
    )


def _between(values: Sequence[int]) -> list[float]:
    """Return values as fractions of a height that shows how they differ."""
    if not any(values):
        return []
    low, high = min(values), max(values)
    return [_BASE_MARGIN + (1 - _BASE_MARGIN) * (each - low) / (high - low) if high > low else 0.5 for each in values]


def _base(values: Sequence[int]) -> float:
    low, high = min([0, *values]), max([0, *values])
    return -low / (high - low) if high > low else 0.0


def _around(values: Sequence[int]) -> list[float]:
    """Return values as fractions of a height on which zero lies at the base."""
    low, high = min([0, *values]), max([0, *values])
    return [(each - low) / (high - low) for each in values] if high > low else []
