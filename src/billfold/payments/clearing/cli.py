"""`billfold clearing`: the balance of each rail, and the payments that explain it to the cent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError
from billfold.cli.output import console, format_eastern, key_value_table, table
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.cards.settlement.reconciliation import print_card_settlement
from billfold.payments.clearing.store import EVER, balances, list_cleared, list_open
from billfold.payments.clearing.types import RAILS, ClearingTotals, OpenPayment
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank


group = CommandGroup()
_ONE_MICROSECOND, _ONE_DAY = timedelta(microseconds=1), timedelta(days=1)


class ClearingReport(NamedTuple):
    """The clearing accounts, the settlement dates that are open, and the payments in transit."""

    held: dict[str, int]
    dates: list[ClearingTotals]
    payments: list[OpenPayment]

    def only(self, rail: str | None) -> ClearingReport:
        """Return the report of one rail, or of all."""
        if rail is None:
            return self
        held = {kind: cents for kind, cents in self.held.items() if kind == f"rail:{rail.lower()}"}
        dates = [each for each in self.dates if each.rail == rail]
        return ClearingReport(held, dates, [each for each in self.payments if each.rail == rail])

    def explained(self, rail: str) -> int:
        """Cents that payments in transit leave on this rail."""
        return sum(d.unsettled_out - d.unsettled_in for d in self.dates if d.rail == rail)

    def unexplained(self, rail: str) -> int:
        """Cents on the accounts of this rail that no payment in transit explains."""
        return self.held.get(f"rail:{rail.lower()}", 0) - self.explained(rail)


RailOption = Annotated[
    Literal["ACH", "WIRE", "CARD", "CRYPTO"] | None, typer.Option(case_sensitive=False, help="Show one rail only.")
]


@group.view("clearing --payments", "clearing --rail card")
async def clearing(
    bank: Bank,
    *,
    payments: Annotated[bool, typer.Option("--payments", help="List each payment in transit.")] = False,
    rail: RailOption = None,
) -> str:
    """Reconcile the clearing accounts: what each rail holds, and what settles when.

    Of the card rail: the processor's files beside what is booked and what the reserve paid.
    """
    shown = (await clearing_report(bank)).only(rail)
    _print_report(shown, rail)
    if payments:
        _print_payments(shown.payments)
    if rail == "CARD":
        await print_card_settlement(bank)
    unexplained_rails = [rail for rail in RAILS if shown.unexplained(rail)]
    if unexplained_rails:
        raise CliError(
            f"Not explained: {', '.join(f'{r} {format_usd(shown.unexplained(r))}' for r in unexplained_rails)}",
            "Run `billfold verify`: it names the first bad row.",
        )
    return "Every clearing account is explained to zero."


_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"


async def clearing_report(bank: Bank) -> ClearingReport:
    """Return the balances of the rails and the payments that explain them, at one moment."""
    bank_id = bank_customer_id(bank.seed)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read"):
        dates = await list_cleared(conn, bank_id, EVER)
        open_day = await conn.fetchval(_OPEN_DAY, bank_id)
        since = EVER._replace(first=open_day, begins=_closed_until(bank, open_day))
        return ClearingReport(await balances(conn), dates, await list_open(conn, bank_id, since))


def _closed_until(bank: Bank, open_day: date) -> datetime:
    """The moment after the close of the business day before the open one."""
    day = open_day - _ONE_DAY
    while not bank.calendars.is_settlement_day(day):
        day -= _ONE_DAY
    return bank.calendars.closes_at(day) + _ONE_MICROSECOND


def _print_report(shown: ClearingReport, only: str | None) -> None:
    rows = [
        (each.rail, each.settles_on, each.payments, format_usd(each.unsettled_in), format_usd(each.unsettled_out))
        for each in shown.dates
    ]
    if rows:
        columns = ("Rail", "Settles on", "Payments>", "To come in>", "To go out>")
        console.print(table("In transit", columns, rows))
    summary: list[tuple[str, object]] = []
    for rail in [only] if only else RAILS:
        summary += [
            (f"{rail} accounts hold", format_usd(shown.held.get(f"rail:{rail.lower()}", 0))),
            (f"{rail} explained", format_usd(shown.explained(rail))),
        ]
    if only is None:
        summary.append(("Suspense holds", format_usd(shown.held.get("suspense", 0))))
    console.print(key_value_table(summary))


def _print_payments(payments: Sequence[OpenPayment]) -> None:
    rows = [
        (p.rail, format_eastern(p.settles_at), p.direction, format_usd(p.amount), p.activity_id or "the bank")
        for p in payments
    ]
    console.print(table("Payments", ("Rail", "Settles at", "Direction", "Amount>", "Activity"), rows))
