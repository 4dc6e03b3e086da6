"""`billfold pocket`: what only the operator does with a Pocket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.accounts.commands import SetPocketState
from billfold.audit.types import Origin
from billfold.cli.context import CliContext, CliError, cli_context
from billfold.cli.output import example, print_success
from billfold.cli.resources import run_with_bank
from billfold.ledger.types import PocketStatus
from billfold.platform import ids

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

app = typer.Typer(
    no_args_is_help=True,
    help="Freeze and unfreeze a Pocket, switch its real-time yield.",
    epilog=example("billfold pocket freeze 5d0c...e1"),
)

PocketId = Annotated[UUID, typer.Argument(help="The Pocket's id.")]


@app.command(epilog=example("billfold pocket freeze 5d0c2a4e-8f00-8000-8000-0000000000e1"))
def freeze(ctx: typer.Context, pocket_id: PocketId) -> None:
    """Freeze a Pocket: money may come in, nothing leaves."""
    _set(cli_context(ctx), pocket_id, status=PocketStatus.FROZEN)
    print_success("The Pocket is frozen.")


@app.command(epilog=example("billfold pocket unfreeze 5d0c2a4e-8f00-8000-8000-0000000000e1"))
def unfreeze(ctx: typer.Context, pocket_id: PocketId) -> None:
    """Open a frozen Pocket again."""
    _set(cli_context(ctx), pocket_id, status=PocketStatus.OPEN)
    print_success("The Pocket is open.")


@app.command(
    "real-time-yield", epilog=example("billfold pocket real-time-yield 5d0c2a4e-8f00-8000-8000-0000000000e1 --off")
)
def real_time_yield(
    ctx: typer.Context,
    pocket_id: PocketId,
    *,
    on: Annotated[bool, typer.Option("--on/--off", help="Show it, or stop showing it.")] = True,
) -> None:
    """Show a Pocket's yield by the second, or stop showing it."""
    _set(cli_context(ctx), pocket_id, real_time_yield=on)
    print_success(f"Real-time yield is {'on' if on else 'off'}.")


def _set(
    ground: CliContext, pocket_id: UUID, *, status: PocketStatus | None = None, real_time_yield: bool | None = None
) -> None:
    async def work(bank: Bank) -> None:
        entry = await bank.directory.find("pocket", pocket_id)
        if entry is None:
            raise CliError(f"There is no Pocket {pocket_id}.", "Look up its id in the API.")
        await bank.engine.submit(
            SetPocketState(
                caller="operator",
                key=ids.new(),
                customers=(entry.customer_id,),
                origin=Origin.operator(),
                pocket_id=pocket_id,
                status=status,
                real_time_yield=real_time_yield,
            )
        )

    run_with_bank(ground, work)
