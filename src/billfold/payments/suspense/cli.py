"""`billfold suspense`: payments whose beneficiary was not found."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import CommandGroup, Row
from billfold.dual_control.cli import said_of
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.payments.suspense.decisions import propose_assignment, propose_return, propose_write_off
from billfold.payments.suspense.rules import SuspenseStatus
from billfold.payments.suspense.store import list_items
from billfold.platform.money import format_usd

group = CommandGroup(
    "suspense", "List payments without an owner; propose their return, their owner or their loss.", example="list"
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


@group.command(f"return {_ITEM} --reason NO_ACCOUNT", f"return {_ITEM} --by-hand --reason 'Returned as IAT, R03'")
async def return_to_sender(
    bank: Bank,
    item_id: ItemId,
    *,
    reason: Annotated[
        str, typer.Option(help="The return reason, as the rail reports it: for ACH a code such as R10. By hand, how.")
    ] = "NO_ACCOUNT",
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="It was returned outside of this bank's files, as IAT entries are.")
    ] = False,
) -> str:
    """Propose to return an item to its sender. The rail's message is created when another operator confirms it.

    With --by-hand no message is created: for items that no message of ours can return.
    """
    return said_of(await propose_return(bank, item_id, reason=reason, by_hand=by_hand, by=_operator(bank)))


@group.command(f"write-off {_ITEM} --reason 'The sender does not take it back'")
async def write_off(
    bank: Bank, item_id: ItemId, *, reason: Annotated[str, typer.Option(help="Why, for the audit log.")]
) -> str:
    """Propose to write off a debit that nobody owes to the bank's losses."""
    return said_of(await propose_write_off(bank, item_id, reason=reason, by=_operator(bank)))


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
