"""`billfold due-work`: customers whose due work fails, and its retry once the cause is mended."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row
from billfold.cli.context import CliError
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import SET_APART_TRIES
from billfold.platform.database.shortage import error_summary

group = CommandGroup("due-work", "Customers whose maturities, fees or ends of day fail.", example="list")


@group.table(
    "list",
    columns=("customer", "due since", "set apart", "tries>", "error", "again at"),
    empty="No customer's due work fails.",
)
async def list_failing(bank: Bank) -> Iterable[Row]:
    """List customers whose due work fails. The bank closes its days without those that are set apart."""
    return [
        (each.customer_id, each.due_at, "yes" if each.tries >= SET_APART_TRIES else "no", *each[2:])
        for each in await scheduler.list_failing(bank.pool)
    ]


@group.command(f"retry {EXAMPLE_ID}")
async def retry(
    bank: Bank, customer_id: Annotated[UUID | None, typer.Argument(help="One customer; without it, all.")] = None
) -> str:
    """Do failing work now, each thing at the instant at which it was due. Trades are settled with the next close."""
    failing = [each.customer_id for each in await scheduler.list_failing(bank.pool)]
    wanted = [each for each in failing if customer_id in {None, each}]
    if not wanted:
        raise CliError("No such customer's due work fails.", "See `billfold due-work list`.")
    result = await scheduler.retry_due_work(bank, wanted)
    for failed, error in result.failed.items():
        raise CliError(
            f"Still failing: {len(result.failed)}, the first {failed}: {error_summary(error)}",
            "See `command_failed` in the log and docs/operate/incident_runbook.md.",
        )
    return f"Up to date: {len(wanted)}."
