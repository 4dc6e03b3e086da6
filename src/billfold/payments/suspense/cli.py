"""`billfold suspense`: payments whose beneficiary was not found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.access.operators.types import Operator
from billfold.cli.command import CommandGroup, Row
from billfold.payments.suspense.decisions import assign_item, return_item
from billfold.payments.suspense.store import list_items
from billfold.payments.suspense.types import SuspenseStatus
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

group = CommandGroup("suspense", "List, return and assign payments whose beneficiary was not found.", example="list")

_ITEM = "7c0d2a4e-8f00-8000-8000-0000000000e1"
_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"
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
    """Return an item to its sender. The rail's message is created at once."""
    item = await return_item(bank, item_id, reason=reason, by=_operator(bank))
    return f"{format_usd(item.amount)} go back by {item.rail}."


@group.command(f"assign {_ITEM} 091000019 812345678901")
async def assign(
    bank: Bank,
    item_id: ItemId,
    routing_number: Annotated[str, typer.Argument(help="The owner's routing number.")],
    account_number: Annotated[str, typer.Argument(help="The owner's account number.")],
) -> str:
    """Credit an item to its owner's portal, as if it had arrived there now."""
    by = _operator(bank)
    item = await assign_item(bank, item_id, routing_number=routing_number, account_number=account_number, by=by)
    return f"{format_usd(item.amount)} are in the Pocket."


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)
