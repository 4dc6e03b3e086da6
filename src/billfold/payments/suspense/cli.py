"""`billfold suspense`: payments whose beneficiary was not found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.access.operators.types import Operator
from billfold.cli.command import CommandGroup, Row
from billfold.freezes.proposing import said_of
from billfold.payments.suspense.decisions import propose_assignment, propose_return
from billfold.payments.suspense.store import list_items
from billfold.payments.suspense.types import SuspenseStatus
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

group = CommandGroup(
    "suspense", "List payments whose beneficiary was not found; propose their return or their owner.", example="list"
)

_ITEM = "7c0d2a4e-8f00-8000-8000-0000000000e1"
_COLUMNS = ("Item", "Rail", "Direction", "Amount>", "Held since", "Status", "Reason")

ItemId = Annotated[UUID, typer.Argument(help="The item's id.")]


@group.table("list", "list --all", columns=_COLUMNS, title="Suspense", empty="Suspense is empty.")
async def list_held(
    bank: Bank, *, everything: Annotated[bool, typer.Option("--all", help="Include released items.")] = False
) -> Iterable[Row]:
    """List held items, oldest first."""
    items = await list_items(bank.pool, status=None if everything else SuspenseStatus.HELD)
    return [
        (i.item_id, i.rail, i.direction, format_usd(i.amount), i.created_at, i.status, i.return_reason or i.reason)
        for i in items
    ]


@group.command(f"return {_ITEM} --reason NO_ACCOUNT")
async def return_to_sender(
    bank: Bank,
    item_id: ItemId,
    reason: Annotated[str, typer.Option(help="The return reason, as the rail reports it.")] = "NO_ACCOUNT",
) -> str:
    """Propose to return an item to its sender. The rail's message is created when another operator confirms it."""
    return said_of(await propose_return(bank, item_id, reason=reason, by=_operator(bank)))


@group.command(f"assign {_ITEM} 091000019 812345678901")
async def assign(
    bank: Bank,
    item_id: ItemId,
    routing_number: Annotated[str, typer.Argument(help="The owner's routing number.")],
    account_number: Annotated[str, typer.Argument(help="The owner's account number.")],
) -> str:
    """Propose to credit an item to its owner's portal, as if it arrived when another operator confirms it."""
    by = _operator(bank)
    numbers = {"routing_number": routing_number, "account_number": account_number}
    return said_of(await propose_assignment(bank, item_id, **numbers, by=by))


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)
