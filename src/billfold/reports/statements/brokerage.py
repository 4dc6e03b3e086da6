"""Monthly brokerage statements: value, holdings, income, and activity with the cash after each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Final, NamedTuple

from billfold.accounts.trades.schemas import settles_on
from billfold.accounts.trades.store import TradeRow
from billfold.bills.rules.earnings import PocketState
from billfold.bills.rules.market import Market
from billfold.http.schemas import format_price
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date
from billfold.platform.errors import InvariantError
from billfold.platform.money import cents_for, format_usd
from billfold.reports import printing
from billfold.reports.entries.types import AccountEntry, AccountStatement, EntryKind, Holding, Period
from billfold.reports.printing import PrintedChart, PrintedTable, short_day
from billfold.reports.statements.store import LINES_MAX

_COLUMNS: Final = printing.columns("Date", "Type", "Details+", "Amount>", "Cash>")
_TRADES: Final = {"BUY": "Purchase", "SELL": "Sale", "MATURITY": "Maturity"}


class _Line(NamedTuple):
    """A line of the activity: its amount, and its effect on cash. Lines with one `subject` can be summed."""

    day: date
    kind: str
    subject: str
    details: str
    amount: int
    cash: int
    units: int = 0


class _Sum(NamedTuple):
    """Sum of the lines of a day, type and subject; `details` are those of the last line."""

    details: str = ""
    lines: int = 0
    amount: int = 0
    cash: int = 0
    units: int = 0

    def add(self, line: _Line) -> _Sum:
        added = (self.amount + line.amount, self.cash + line.cash, self.units + line.units)
        return _Sum(line.details, self.lines + 1, *added)


class ActivityLines:
    """The activity of a brokerage account, collected page by page; `totals` are the amounts of all entries by kind."""

    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars
        self.totals: Counter[EntryKind] = Counter()
        self._lines: list[tuple[int, int, _Line]] = []
        self._sums: dict[tuple[date, bool, str, str], _Sum] = {}
        self._count = 0

    def add_entries(self, entries: Iterable[AccountEntry]) -> None:
        """Add entries in booking order; those without a journal entry are gains and have no line."""
        for each in entries:
            self.totals[each.kind] += each.amount
            if each.entry_no is not None:
                self._add(each.entry_no, 0, _entry_line(each))

    def add_trades(self, trades: Iterable[TradeRow]) -> None:
        """Add trades in booking order."""
        for each in trades:
            if each.activity in _TRADES:
                self._add(each.entry_no, each.trade_no, _trade_line(each, settles_on(each, self._calendars)))

    def table(self, statement: AccountStatement) -> PrintedTable:
        """Return sweeps, fees, trades and maturities in order, with the cash after each.

        More than LINES_MAX lines are condensed to one line per day, type, and bill or direction.
        Raises InvariantError unless they lead from the opening cash to the closing cash.
        """
        cash, rows = statement.opening.cash, list[tuple[str, ...]]()
        for line in self._one_by_one() if self._count <= LINES_MAX else self._summed():
            cash += line.cash
            rows.append((short_day(line.day), line.kind, line.details, format_usd(line.amount), format_usd(cash)))
        if cash != statement.closing.cash:
            raise InvariantError("The activity does not lead to the cash.", cash=cash, closing=statement.closing.cash)
        return PrintedTable(
            heading="Activity", columns=_COLUMNS, rows=rows, empty="There was no activity in this month."
        )

    def _add(self, entry_no: int, no: int, line: _Line) -> None:
        key = (line.day, line.cash < 0, line.kind, line.subject)
        self._sums[key] = self._sums.get(key, _Sum()).add(line)
        self._count += 1
        if self._count <= LINES_MAX:
            self._lines.append((entry_no, no, line))

    def _one_by_one(self) -> Iterable[_Line]:
        # Within one journal entry, credits come first: cash is raised before it is paid, and is never below zero.
        return (line for *_, line in sorted(self._lines, key=lambda each: (each[0], each[2].cash < 0, each[1])))

    def _summed(self) -> Iterable[_Line]:
        # The same within one day.
        for (day, _, kind, subject), total in sorted(self._sums.items()):
            details = total.details
            if total.lines > 1:
                units = f"{total.units:,} of " if total.units else ""
                details = f"{units}{subject}: {total.lines:,} lines; each is in the reports of the day"
            yield _Line(day, kind, subject, details, total.amount, total.cash)


def _entry_line(entry: AccountEntry) -> _Line:
    if entry.security is not None:
        subject = f"CUSIP {entry.security.cusip}, in kind"
        details = f"{entry.units:,} of {subject}"
        return _Line(entry.booked_on, entry.title, subject, details, entry.amount, 0, entry.units or 0)
    if entry.kind == EntryKind.AUM_FEE:
        subject = "Management fee"
        return _Line(entry.booked_on, "Fee", subject, subject, entry.amount, entry.amount)
    subject = "From the bank account" if entry.amount > 0 else "To the bank account"
    return _Line(entry.booked_on, "Sweep", subject, f"{subject}: {entry.title}", entry.amount, entry.amount)


def _trade_line(trade: TradeRow, settled_on: date) -> _Line:
    cash = -trade.notional if trade.incoming else trade.notional
    subject = f"CUSIP {trade.cusip}"
    details = f"{trade.units:,} of {subject} at {format_price(trade.price_micros)}"
    if settled_on != et_date(trade.traded_at):
        details += f", settles {short_day(settled_on)}"
    return _Line(et_date(trade.traded_at), _TRADES[trade.activity], subject, details, cash, cash, trade.units)


_UNIT_CENTS: Final = 10_000
_BASE_MARGIN: Final = 0.06
_HOLDINGS: Final = printing.columns(
    "CUSIP+", "Matures", "Par>", "Price>", "Market value>", "Cost>", "Unrealized>", "Yield>"
)
_INCOME: Final = printing.columns("+", "This month>", "This year>")
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
    """The value of a Pocket at the end of a business day, and its bills' earnings of that day, in cents."""

    day: date
    value: int
    earned: int


class IncomeStates(NamedTuple):
    """A Pocket at the beginning of the year, at the beginning of the month, and at its end."""

    year: PocketState
    start: PocketState
    end: PocketState


def day_values(
    market: Market, period: Period, days: Mapping[date, PocketState], states: IncomeStates
) -> list[DayValue]:
    """Return the value at the closing price of every day, from the states at the end of some days."""
    state, valued = states.start, []
    for number in range((period.last_day - period.first_day).days + 2):
        day = period.first_day + timedelta(days=number - 1)
        state = states.end if day == period.last_day else days.get(day, state)
        valued.append((day, state, _value(market, day, state)))
    return [
        DayValue(day, value, value - was - _net_inflow(state) + _net_inflow(old))
        for (_, old, was), (day, state, value) in pairwise(valued)
    ]


def summary(statement: AccountStatement, totals: Mapping[EntryKind, int]) -> list[tuple[str, str]]:
    """Return the value at both ends and the changes in between."""
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
    """Return the income of the month and the year. Raises InvariantError if it differs from the gain of the bills."""
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
    """Return charts of the value and the earnings of each day, and of upcoming maturities."""
    period = statement.period
    ends = short_day(period.first_day), short_day(period.last_day)
    values, earned = [each.value for each in days], [each.earned for each in days]
    value = PrintedChart(
        title="Value",
        caption=f"{format_usd(min(values))} to {format_usd(max(values))}",
        kind="area",
        points=_heights_between(values),
        ends=ends,
        alt=f"from {format_usd(statement.opening.value)} to {format_usd(statement.closing.value)}.",
        empty="No value",
    )
    earnings = PrintedChart(
        title="Earnings per day",
        caption=f"{format_usd(sum(earned))} in the month",
        kind="bars",
        points=_heights_around_zero(earned),
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


def _net_inflow(state: PocketState) -> int:
    """Return the net inflow since the Pocket was opened, less fees."""
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


def _heights_between(values: Sequence[int]) -> list[float]:
    """Return values as fractions of the chart's height, scaled to show their differences."""
    if not any(values):
        return []
    low, high = min(values), max(values)
    return [_BASE_MARGIN + (1 - _BASE_MARGIN) * (each - low) / (high - low) if high > low else 0.5 for each in values]


def _base(values: Sequence[int]) -> float:
    low, high = min([0, *values]), max([0, *values])
    return -low / (high - low) if high > low else 0.0


def _heights_around_zero(values: Sequence[int]) -> list[float]:
    """Return values as fractions of the chart's height, with zero at the base."""
    low, high = min([0, *values]), max([0, *values])
    return [(each - low) / (high - low) for each in values] if high > low else []
