"""`billfold suspense`: payments whose beneficiary was not found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.cli.command import CommandGroup, Row, submit_as_operator
from billfold.cli.context import CliError
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.suspense.commands import AssignFromSuspense, ReturnFromSuspense
from billfold.payments.suspense.owner_details import details_for_owner
from billfold.payments.suspense.store import get_item, list_items
from billfold.payments.suspense.types import SuspenseStatus
from billfold.platform.ids import command_id
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
async def return_item(
    bank: Bank,
    item_id: ItemId,
    reason: Annotated[str, typer.Option(help="The return reason, as the rail reports it.")] = "NO_ACCOUNT",
) -> str:
    """Return an item to its sender. The rail's message is created at once."""
    await get_item(bank.pool, item_id)
    key, references = command_id("suspense.return", item_id), (item_id,)
    bank_id = bank_customer_id(bank.seed)
    await submit_as_operator(
        bank, ReturnFromSuspense, bank_id, key=key, item_id=item_id, reason=reason, references=references
    )
    item = await get_item(bank.pool, item_id)
    return f"{format_usd(item.amount)} go back by {item.rail}."


@group.command(f"assign {_ITEM} 091000019 812345678901")
async def assign(
    bank: Bank,
    item_id: ItemId,
    routing_number: Annotated[str, typer.Argument(help="The owner's routing number.")],
    account_number: Annotated[str, typer.Argument(help="The owner's account number.")],
) -> str:
    """Credit an item to its owner's portal, as if it had arrived there now."""
    entry = await bank.directory.find("account", f"{routing_number}:{account_number}")
    if entry is None:
        raise CliError(f"No portal has the account number {account_number}.", "Find it in the API.")
    await submit_as_operator(
        bank,
        AssignFromSuspense,
        bank_customer_id(bank.seed),
        entry.customer_id,
        key=command_id(f"suspense.assign:{entry.object_id}", item_id),
        item_id=item_id,
        portal_id=entry.object_id,
        pocket_id=await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id),
        references=(item_id,),
        details=await details_for_owner(bank, await get_item(bank.pool, item_id), entry.customer_id),
    )
    return f"{format_usd((await get_item(bank.pool, item_id)).amount)} are in the Pocket."
