"""`billfold clearing`: the balance of each rail, and the payments that explain it to the cent."""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from billfold.cli.command import CommandGroup, console, key_value_table, table
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.payments.cards.settlement import store
from billfold.payments.clearing.report import ClearingReport, clearing_report
from billfold.payments.clearing.rules import RAILS, OpenPayment
from billfold.platform.dates import format_eastern
from billfold.platform.money import format_usd

_COLUMNS = (
    "Settles on",
    "Net of files>",
    "Records>",
    "In suspense>",
    "Fees>",
    "Interchange>",
    "Difference>",
    "Reserve paid>",
)


async def print_card_settlement(bank: Bank) -> None:
    """Print the settlement dates and every record not booked as stated. Raises CliError if any differs.

    Positive amounts are paid by the bank.
    """
    async with bank.one_snapshot() as conn:
        dates = await store.reconcile(conn, bank.own_id)
        differences = await store.list_differences(conn)
    rows = [
        (
            each.settles_on,
            *map(format_usd, (each.file_net, each.records, each.held, each.fees, -each.interchange, each.difference)),
            format_usd(each.reserve) if each.is_settled else "open",
        )
        for each in dates
    ]
    if rows:
        console.print(table("Card settlement", _COLUMNS, rows))
    if differences:
        shown = [(d.settles_on, d.record_id, d.card_id, *map(_amount, (d.stated, d.booked))) for d in differences]
        columns = ("Settles on", "Record", "Card", "Stated>", "Booked>")
        console.print(table("Records that differ", columns, shown))
    wrong = [each for each in dates if each.difference or (each.is_settled and each.unsettled)]
    if wrong or differences:
        days = ", ".join(str(each.settles_on) for each in wrong) or "amounts that cancel out"
        raise CliError(
            f"The files of the processor and the books differ: {days}.", "Ask the processor for its records."
        )


def _amount(cents: int | None) -> str | None:
    return None if cents is None else format_usd(cents)


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
    """Reconcile the clearing accounts: the balance of each rail, and its coming settlements.

    For the card rail: the processor's files, the bookings and the reserve's payments.
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
