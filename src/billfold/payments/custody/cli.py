"""`billfold custody`: bills that come from another custodian, or go to one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from billfold.audit.types import Origin
from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, example, print_success, table
from billfold.cli.resources import run_with_bank
from billfold.payments.custody.commands import DeliverBills, ReceiveBills
from billfold.payments.custody.store import list_transfers
from billfold.platform import ids
from billfold.platform.dates import et_date
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.custody.types import SecurityTransfer

app = typer.Typer(
    no_args_is_help=True,
    help="Take in bills from another custodian, and deliver bills to one.",
    epilog=example("billfold custody list"),
)
_CALLER = "operator"
_POCKET = "5d0c2a4e-8f00-8000-8000-0000000000e1"

PocketId = Annotated[UUID, typer.Argument(help="The Pocket's id.")]
Cusip = Annotated[str, typer.Argument(help="The bill.")]
Units = Annotated[int, typer.Argument(help="Bills of $100 face.", min=1)]
Account = Annotated[str, typer.Option(help="The account there.")]
Key = Annotated[UUID | None, typer.Option(help="Asked again under the same key, nothing is moved a second time.")]


@app.command("list", epilog=example("billfold custody list"))
def list_newest(ctx: typer.Context) -> None:
    """Show the newest transfers."""

    async def work(bank: Bank) -> list[SecurityTransfer]:
        return await list_transfers(bank.pool)

    rows = [
        (
            et_date(each.created_at),
            each.direction,
            each.cusip,
            each.units,
            format_usd(each.market_value),
            each.counterparty_name,
            each.reason or each.status,
        )
        for each in run_with_bank(cli_context(ctx), work)
    ]
    columns = ("Booked on", "Way", "Bill", "Units>", "Value>", "Other side", "Status")
    console.print(table("Bills from and to other custodians", columns, rows))


@app.command(epilog=example(f"billfold custody receive {_POCKET} 912797PT8 100 --from Harbor --account 1"))
def receive(
    ctx: typer.Context,
    pocket_id: PocketId,
    cusip: Cusip,
    units: Units,
    sender: Annotated[str, typer.Option("--from", help="Who had them.")],
    account: Account,
    *,
    acquired_on: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Since when.")] = None,
    cost: Annotated[int | None, typer.Option(help="What they cost, in cents.", min=0)] = None,
    key: Key = None,
) -> None:
    """Take in one lot of bills that has arrived."""
    fields: dict[str, Any] = {"acquired_on": None if acquired_on is None else acquired_on.date(), "cost_cents": cost}
    fields |= {"counterparty_name": sender, "counterparty_account": account}
    cents_value = _submit(ctx, ReceiveBills, pocket_id, cusip, units, key, fields)
    print_success(f"{units} bills worth {format_usd(cents_value)} are in the Pocket.")


@app.command(epilog=example(f"billfold custody deliver {_POCKET} 912797PT8 100 --to Harbor --account 1"))
def deliver(
    ctx: typer.Context,
    pocket_id: PocketId,
    cusip: Cusip,
    units: Units,
    receiver: Annotated[str, typer.Option("--to", help="Who gets them.")],
    account: Account,
    *,
    key: Key = None,
) -> None:
    """Deliver bills, the oldest lots first. The custodian is told by a worker, at once."""
    fields = {"counterparty_name": receiver, "counterparty_account": account}
    cents_value = _submit(ctx, DeliverBills, pocket_id, cusip, units, key, fields)
    print_success(f"{units} bills worth {format_usd(cents_value)} have left the Pocket.")


def _submit(
    ctx: typer.Context,
    kind: type[ReceiveBills | DeliverBills],
    pocket_id: UUID,
    cusip: str,
    units: int,
    key: UUID | None,
    fields: dict[str, Any],
) -> int:
    """Submit the command; return what the bills are worth in cents."""
    command_key = key or ids.new()

    async def work(bank: Bank) -> int:
        entry = await bank.directory.find("pocket", pocket_id)
        if entry is None:
            raise CliError(f"There is no Pocket {pocket_id}.", "Look up its id in the API.")
        answer = await bank.engine.submit(
            kind(
                caller=_CALLER,
                key=command_key,
                customers=(entry.customer_id,),
                origin=Origin.operator(),
                transfer_id=command_key,
                pocket_id=pocket_id,
                cusip=cusip,
                units=units,
                **fields,
            )
        )
        return int(answer.outcome["market_value"])

    return run_with_bank(cli_context(ctx), work)
