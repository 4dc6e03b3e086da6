"""What the processor's files state, beside what is booked and what the reserve paid, per settlement date."""

from billfold.cli.command import console, table
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.cards.settlement import store
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
    """Print the settlement dates and every record that is not booked as it is stated. Raises CliError if any differs.

    Positive amounts are paid by the bank.
    """
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read"):
        dates = await store.reconcile(conn, bank_customer_id(bank.seed))
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
