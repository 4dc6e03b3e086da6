"""`billfold suspense`: money for which no owner was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.audit.types import Origin
from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, example, format_eastern, print_success, table
from billfold.cli.resources import run_with_bank
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.suspense.commands import AssignFromSuspense, ReturnFromSuspense
from billfold.payments.suspense.store import get_item, list_items
from billfold.payments.suspense.types import SuspenseStatus
from billfold.platform.ids import command_id
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.suspense.types import SuspenseItem

app = typer.Typer(
    no_args_is_help=True,
    help="Show, return and book money for which no owner was found.",
    epilog=example("billfold suspense list"),
)
_ITEM = "7c0d2a4e-8f00-8000-8000-0000000000e1"
_CALLER = "operator"

ItemId = Annotated[UUID, typer.Argument(help="The item's id.")]


@app.command("list", epilog=example("billfold suspense list", "billfold suspense list --all"))
def list_held(
    ctx: typer.Context, *, everything: Annotated[bool, typer.Option("--all", help="What was held before too.")] = False
) -> None:
    """Show what is held, oldest first."""

    async def work(bank: Bank) -> list[SuspenseItem]:
        return await list_items(bank.pool, status=None if everything else SuspenseStatus.HELD)

    items = run_with_bank(cli_context(ctx), work)
    if not items:
        print_success("Nothing is held.")
        return
    rows = [
        (
            i.item_id,
            i.rail,
            i.direction,
            format_usd(i.amount),
            format_eastern(i.held_at),
            i.status,
            i.return_reason or i.reason,
        )
        for i in items
    ]
    columns = ("Item", "Rail", "Direction", "Amount>", "Held since", "Status", "Reason")
    console.print(table("Suspense", columns, rows))


@app.command("return", epilog=example(f"billfold suspense return {_ITEM} --reason NO_ACCOUNT"))
def return_item(
    ctx: typer.Context,
    item_id: ItemId,
    reason: Annotated[str, typer.Option(help="Why, as its rail shall say it.")] = "NO_ACCOUNT",
) -> None:
    """Send an item back the way it came. The rail's message is made at once."""

    async def work(bank: Bank) -> str:
        await get_item(bank.pool, item_id)
        await bank.engine.submit(
            ReturnFromSuspense(
                caller=_CALLER,
                key=command_id("suspense.return", item_id),
                customers=(bank_customer_id(bank.seed),),
                origin=Origin.operator(),
                item_id=item_id,
                reason=reason,
                references=(item_id,),
            )
        )
        item = await get_item(bank.pool, item_id)
        return f"{format_usd(item.amount)} go back by {item.rail}."

    print_success(run_with_bank(cli_context(ctx), work))


@app.command(epilog=example(f"billfold suspense assign {_ITEM} 091000019 812345678901"))
def assign(
    ctx: typer.Context,
    item_id: ItemId,
    routing_number: Annotated[str, typer.Argument(help="The owner's routing number.")],
    account_number: Annotated[str, typer.Argument(help="The owner's account number.")],
) -> None:
    """Book an item to its owner's portal, as if it had arrived there now."""

    async def work(bank: Bank) -> str:
        entry = await bank.directory.find("account", f"{routing_number}:{account_number}")
        if entry is None:
            raise CliError(f"No portal has the account number {account_number}.", "Look it up in the API.")
        pocket_id = await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id)
        await bank.engine.submit(
            AssignFromSuspense(
                caller=_CALLER,
                key=command_id(f"suspense.assign:{entry.object_id}", item_id),
                customers=(bank_customer_id(bank.seed), entry.customer_id),
                origin=Origin.operator(),
                item_id=item_id,
                portal_id=entry.object_id,
                pocket_id=pocket_id,
                references=(item_id,),
            )
        )
        return f"{format_usd((await get_item(bank.pool, item_id)).amount)} are in the Pocket."

    print_success(run_with_bank(cli_context(ctx), work))


_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"
