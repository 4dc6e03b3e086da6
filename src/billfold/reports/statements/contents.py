"""Composes a monthly statement as a document from the entries of its account.

A bank statement shows each payment of the month, and the sweeps that leave the account at zero.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

from billfold.bills.rules.earnings import PocketState
from billfold.bills.rules.market import Market
from billfold.platform.dates import et_date
from billfold.platform.money import format_usd
from billfold.reports import printing
from billfold.reports.entries.types import AccountEntry, AccountStatement, AccountType, EntryKind
from billfold.reports.statements import brokerage
from billfold.reports.statements.brokerage import ActivityLines, IncomeStates
from billfold.reports.statements.store import LINES_MAX

_COLUMNS: Final = printing.columns("Date", "Type", "Details+", "Amount>", "Balance>")
NOTES: Final = """
The bank account of a Pocket is at zero after every payment: what comes in is swept to its brokerage account, what
goes out is swept from there. Sweeps are shown as one line per day.

In case of errors or questions about your electronic transfers: call or write to us at the number and address above
as soon as you can, if you think your statement is wrong or if you need more information about a transfer on it. We
must hear from you no later than 60 days after we sent the first statement on which the problem appeared. Tell us
your name and account number, describe the error or the transfer you are unsure about, why you believe it is an
error or need more information, and its dollar amount. We will investigate your complaint and will correct any error
promptly. If we take more than 10 business days to do this, we will credit your account for the amount you think is
in error, so that you will have the use of the money while we investigate.
"""


class PaymentLines:
    """The lines of a bank statement, collected page by page; its totals are those of all payments."""

    def __init__(self) -> None:
        self._payments: list[AccountEntry] = []
        self._by_day: Counter[tuple[date, str]] = Counter()
        self._counts: Counter[tuple[date, str]] = Counter()
        self._alone: dict[tuple[date, str], AccountEntry] = {}
        self.credited = self.debited = self.fees = 0

    def add(self, entries: Iterable[AccountEntry]) -> None:
        """Add entries in booking order; sweeps are derived from the payments."""
        for each in entries:
            if each.kind == EntryKind.SWEEP:
                continue
            if each.kind == EntryKind.FEE:
                self.fees -= each.amount
            elif each.amount > 0:
                self.credited += each.amount
            else:
                self.debited -= each.amount
            day = each.booked_on, printing.printed(each.title)
            self._by_day[day] += each.amount
            self._counts[day] += 1
            self._alone.setdefault(day, each)
            if len(self._payments) <= LINES_MAX:
                self._payments.append(each)

    def table(self, statement: AccountStatement) -> printing.PrintedTable:
        """Return the activity of the month, with the balance after each line."""
        lines = self._one_by_one() if len(self._payments) <= LINES_MAX else self._summed()
        balance, day, rows = statement.opening.value, None, list[tuple[str, ...]]()
        for booked_on, kind, details, amount in lines:
            if day not in {None, booked_on}:
                rows.append(_sweep(day, balance))
                balance = 0
            day, balance = booked_on, balance + amount
            rows.append((printing.short_day(day), kind, details, format_usd(amount), format_usd(balance)))
        if day is not None:
            rows.append(_sweep(day, balance))
        return printing.PrintedTable(
            heading="Payments and sweeps", columns=_COLUMNS, rows=rows, empty="There were no payments in this month."
        )

    def summary(self, statement: AccountStatement) -> list[tuple[str, str]]:
        """Return the balances and the totals between them."""
        period = statement.period
        sweeps = self.debited + self.fees - self.credited
        return [
            (f"Opening balance on {printing.short_day(period.first_day)}", format_usd(statement.opening.value)),
            ("Deposits and other credits", format_usd(self.credited)),
            ("Payments and other debits", format_usd(-self.debited)),
            ("Fees", format_usd(-self.fees)),
            (
                "Swept from the brokerage account, net" if sweeps > 0 else "Swept to the brokerage account, net",
                format_usd(sweeps),
            ),
            (f"Closing balance on {printing.short_day(period.last_day)}", format_usd(statement.closing.value)),
        ]

    def _one_by_one(self) -> Iterable[tuple[date, str, str, int]]:
        for each in self._payments:
            yield each.booked_on, printing.printed(each.title), _details(each), each.amount

    def _summed(self) -> Iterable[tuple[date, str, str, int]]:
        for (day, kind), amount in sorted(self._by_day.items()):
            details = f"{self._counts[day, kind]:,} payments; each is in the bank statement report of the day"
            yield day, kind, details if self._counts[day, kind] > 1 else _details(self._alone[day, kind]), amount


def _sweep(day: date | None, balance: int) -> tuple[str, ...]:
    assert day is not None
    details = "To the brokerage account" if balance > 0 else "From the brokerage account" if balance < 0 else "Even"
    return (printing.short_day(day), "Sweep", details, format_usd(-balance), format_usd(0))


def _details(entry: AccountEntry) -> str:
    parts = (entry.counterparty, *entry.purpose, *entry.references.all[:1])
    shown = dict.fromkeys(line for part in parts if part and (line := printing.printed(part)))
    without_repeats = [part for part in shown if not any(part in other for other in shown if other != part)]
    return " · ".join(without_repeats) or "—"


_TITLES = {AccountType.BANK: "Bank statement", AccountType.BROKERAGE: "Brokerage statement"}


class Issue(NamedTuple):
    """The issuer and recipient of a statement, its time, and the reason for a corrected version."""

    bank: printing.PrintedBank
    recipient: Sequence[str]
    made_at: datetime
    version: int = 1
    reason: str | None = None


class BrokerageReading(NamedTuple):
    """The contents of a brokerage statement: activity, costs by CUSIP, and states of the Pocket."""

    lines: ActivityLines
    costs: dict[str, int]
    days: Mapping[date, PocketState]
    states: IncomeStates


def compose_bank(statement: AccountStatement, lines: PaymentLines, issue: Issue) -> printing.PrintedDocument:
    """Return a bank statement."""
    return _document(
        statement,
        issue,
        summary=lines.summary(statement),
        tables=(lines.table(statement),),
        notes=printing.paragraphs(NOTES),
    )


def compose_brokerage(
    statement: AccountStatement, reading: BrokerageReading, market: Market, *, issue: Issue
) -> printing.PrintedDocument:
    """Return a brokerage statement. Raises InvariantError if its parts disagree."""
    return _document(
        statement,
        issue,
        summary=brokerage.summary(statement, reading.lines.totals),
        charts=brokerage.charts(
            statement, brokerage.day_values(market, statement.period, reading.days, reading.states)
        ),
        tables=(
            brokerage.holdings(statement, reading.costs, market),
            brokerage.income(statement, reading.states),
            reading.lines.table(statement),
        ),
        notes=printing.paragraphs(brokerage.NOTES),
    )


def _document(statement: AccountStatement, issue: Issue, **parts: object) -> printing.PrintedDocument:
    account, period = statement.account, statement.period
    made_on = et_date(issue.made_at)
    return printing.PrintedDocument(
        title=_TITLES[account.type],
        subtitle=f"{period.first_day:%B %Y}",
        reference=printing.masked(account.number),
        made_on=made_on,
        bank=issue.bank,
        recipient=issue.recipient,
        details=(
            ("Pocket", printing.printed(account.name)),
            ("Account", printing.masked(account.number)),
            ("Routing number", account.routing_number),
            ("Period", f"{printing.printed_day(period.first_day)} to {printing.printed_day(period.last_day)}"),
            ("Statement date", printing.printed_day(made_on)),
        ),
        correction="" if issue.reason is None else _correction(issue),
        **parts,  # type: ignore[arg-type]
    )


def _correction(issue: Issue) -> str:
    replaced = f"Corrected statement, version {issue.version}. It replaces every earlier one of this month."
    return f"{replaced} {printing.printed(issue.reason or '')}"
