"""A monthly statement as a document, from what was read of its account."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import NamedTuple

from billfold.bills.rules.earnings import PocketState
from billfold.bills.rules.market import Market
from billfold.platform.dates import et_date
from billfold.reports.entries.types import AccountStatement, AccountType
from billfold.reports.printing.printing import masked, paragraphs, printed, printed_day
from billfold.reports.printing.types import PrintedBank, PrintedDocument
from billfold.reports.statements import bank_contents, brokerage_contents
from billfold.reports.statements.bank_contents import PaymentLines
from billfold.reports.statements.brokerage_activity import ActivityLines
from billfold.reports.statements.brokerage_contents import IncomeStates

_TITLES = {AccountType.BANK: "Bank statement", AccountType.BROKERAGE: "Brokerage statement"}


class Issue(NamedTuple):
    """Who issues a statement to whom, when, and what a corrected version replaces."""

    bank: PrintedBank
    recipient: Sequence[str]
    made_at: datetime
    version: int = 1
    reason: str | None = None


class BrokerageReading(NamedTuple):
    """What a brokerage statement shows: its activity, costs by CUSIP, and states of the Pocket."""

    lines: ActivityLines
    costs: dict[str, int]
    days: Mapping[date, PocketState]
    states: IncomeStates


def compose_bank(statement: AccountStatement, lines: PaymentLines, issue: Issue) -> PrintedDocument:
    """Return a bank statement."""
    return _document(
        statement,
        issue,
        summary=lines.summary(statement),
        tables=(lines.table(statement),),
        notes=paragraphs(bank_contents.NOTES),
    )


def compose_brokerage(
    statement: AccountStatement, reading: BrokerageReading, market: Market, *, issue: Issue
) -> PrintedDocument:
    """Return a brokerage statement. Raises InvariantError when its parts disagree."""
    contents = brokerage_contents
    return _document(
        statement,
        issue,
        summary=contents.summary(statement, reading.lines.totals),
        charts=contents.charts(statement, contents.day_values(market, statement.period, reading.days, reading.states)),
        tables=(
            contents.holdings(statement, reading.costs, market),
            contents.income(statement, reading.states),
            reading.lines.table(statement),
        ),
        notes=paragraphs(contents.NOTES),
    )


def _document(statement: AccountStatement, issue: Issue, **parts: object) -> PrintedDocument:
    account, period = statement.account, statement.period
    made_on = et_date(issue.made_at)
    return PrintedDocument(
        title=_TITLES[account.type],
        subtitle=f"{period.first_day:%B %Y}",
        reference=masked(account.number),
        made_on=made_on,
        bank=issue.bank,
        recipient=issue.recipient,
        details=(
            ("Pocket", printed(account.name)),
            ("Account", masked(account.number)),
            ("Routing number", account.routing_number),
            ("Period", f"{printed_day(period.first_day)} to {printed_day(period.last_day)}"),
            ("Statement date", printed_day(made_on)),
        ),
        correction="" if issue.reason is None else _correction(issue),
        **parts,  # type: ignore[arg-type]
    )


def _correction(issue: Issue) -> str:
    replaced = f"Corrected statement, version {issue.version}. It replaces every earlier one of this month."
    return f"{replaced} {printed(issue.reason or '')}"
