"""The activity of a monthly brokerage statement: cash, trades and bills in kind, with the cash after each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple

from billfold.accounts.trades.schemas import settles_on
from billfold.accounts.trades.store import TradeRow
from billfold.http.schemas import format_price
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date
from billfold.platform.errors import InvariantError
from billfold.platform.money import format_usd
from billfold.reports.entries.types import AccountEntry, AccountStatement, EntryKind
from billfold.reports.printing.printing import short_day
from billfold.reports.printing.types import PrintedColumn, PrintedTable
from billfold.reports.statements.types import LINES_MAX

_COLUMNS: Final = (
    PrintedColumn("Date"),
    PrintedColumn("Type"),
    PrintedColumn("Details", grows=True),
    PrintedColumn("Amount", "right"),
    PrintedColumn("Cash", "right"),
)
_TRADES: Final = {"BUY": "Purchase", "SELL": "Sale", "MATURITY": "Maturity"}


class _Line(NamedTuple):
    """A line of the activity: what it moves, and how that changes the cash. Lines of one `subject` can be summed."""

    day: date
    kind: str
    subject: str
    details: str
    amount: int
    cash: int
    units: int = 0


class _Sum(NamedTuple):
    """Lines of a day, type and subject; `details` are those of the last."""

    details: str = ""
    lines: int = 0
    amount: int = 0
    cash: int = 0
    units: int = 0

    def add(self, line: _Line) -> _Sum:
        added = (self.amount + line.amount, self.cash + line.cash, self.units + line.units)
        return _Sum(line.details, self.lines + 1, *added)


class ActivityLines:
    """The activity of a brokerage account, taken up page by page; `totals` are the amounts of all entries by kind."""

    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars
        self.totals: Counter[EntryKind] = Counter()
        self._lines: list[tuple[int, int, _Line]] = []
        self._sums: dict[tuple[date, bool, str, str], _Sum] = {}
        self._count = 0

    def add_entries(self, entries: Iterable[AccountEntry]) -> None:
        """Take up entries in booking order; those without a journal entry are gains, and no lines."""
        for each in entries:
            self.totals[each.kind] += each.amount
            if each.entry_no is not None:
                self._add(each.entry_no, 0, _entry_line(each))

    def add_trades(self, trades: Iterable[TradeRow]) -> None:
        """Take up trades in booking order."""
        for each in trades:
            if each.activity in _TRADES:
                self._add(each.entry_no, each.trade_no, _trade_line(each, settles_on(each, self._calendars)))

    def table(self, statement: AccountStatement) -> PrintedTable:
        """Return sweeps, fees, trades and maturities in their order, with the cash after each.

        Of more than LINES_MAX there is one line per day, type, and bill or direction.
        Raises InvariantError unless they lead from the cash at the opening to the cash at the closing.
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
        # Of one journal entry, first what brings cash: it is raised before it is paid, and is never below zero.
        return (line for *_, line in sorted(self._lines, key=lambda each: (each[0], each[2].cash < 0, each[1])))

    def _summed(self) -> Iterable[_Line]:
        # Of one day, too.
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
