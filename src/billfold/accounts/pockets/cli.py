"""`billfold pocket`: operator-only changes of a Pocket."""

from typing import Annotated, Any
from uuid import UUID

import typer

from billfold.accounts.pockets.commands import SetPocketState
from billfold.cli.command import EXAMPLE_ID, Alone, CommandGroup, customer_of_pocket, require_alone, submit_as_operator
from billfold.ledger.bank import Bank
from billfold.ledger.types import PocketStatus

group = CommandGroup(
    "pocket", "Freeze and unfreeze a Pocket, switch its real-time yield.", example="freeze 5d0c...e1 --alone"
)

PocketId = Annotated[UUID, typer.Argument(help="The Pocket's id.")]


@group.command(f"freeze {EXAMPLE_ID} --alone")
async def freeze(bank: Bank, pocket_id: PocketId, *, alone: Alone = False) -> str:
    """Freeze a Pocket: it can receive money, but no money leaves it."""
    require_alone("pocket", alone=alone)
    await _set(bank, pocket_id, status=PocketStatus.FROZEN)
    return "The Pocket is frozen."


@group.command(f"unfreeze {EXAMPLE_ID} --alone")
async def unfreeze(bank: Bank, pocket_id: PocketId, *, alone: Alone = False) -> str:
    """Unfreeze a Pocket."""
    require_alone("pocket --lift", alone=alone)
    await _set(bank, pocket_id, status=PocketStatus.OPEN)
    return "The Pocket is open."


@group.command(f"real-time-yield {EXAMPLE_ID} --off")
async def real_time_yield(
    bank: Bank, pocket_id: PocketId, *, on: Annotated[bool, typer.Option("--on/--off", help="Show it or not.")] = True
) -> str:
    """Show a Pocket's yield by the second, or stop showing it."""
    await _set(bank, pocket_id, real_time_yield=on)
    return f"Real-time yield is {'on' if on else 'off'}."


async def _set(bank: Bank, pocket_id: UUID, **state: Any) -> None:
    fields = {"status": None, "real_time_yield": None} | state
    customer_id = await customer_of_pocket(bank, pocket_id)
    await submit_as_operator(bank, SetPocketState, customer_id, pocket_id=pocket_id, **fields)
