"""`billfold clearing`: the balance of each rail, and the payments that explain it to the cent."""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from billfold.cli.command import CommandGroup, console, key_value_table, table
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.payments.cards.settlement.reconciliation import print_card_settlement
from billfold.payments.clearing.report import ClearingReport, clearing_report
from billfold.payments.clearing.types import RAILS, OpenPayment
from billfold.platform.dates import format_eastern
from billfold.platform.money import format_usd

group = CommandGroup()


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
