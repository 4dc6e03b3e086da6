"""What an operator does with an item of suspense: returns it to its sender, or credits it to its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.access.operators.types import Operator, Power
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.suspense.commands import AssignFromSuspense, ReturnFromSuspense
from billfold.payments.suspense.owner_details import details_for_owner
from billfold.payments.suspense.store import get_item
from billfold.platform.errors import NotFound
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.suspense.types import SuspenseItem

_CALLER = "operator"
_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"


async def return_item(bank: Bank, item_id: UUID, *, reason: str, by: Operator) -> SuspenseItem:
    """Return an item to its sender; the rail's message is created at once. Raises NotFound, Refused."""
    by.require(Power.MOVE_MONEY)
    await get_item(bank.pool, item_id)
    await bank.engine.submit(
        ReturnFromSuspense(
            caller=_CALLER,
            key=_key(f"return:{reason}", item_id, by),
            customers=(bank_customer_id(bank.seed),),
            origin=by.origin,
            item_id=item_id,
            reason=reason,
            references=(item_id,),
        )
    )
    return await get_item(bank.pool, item_id)


async def assign_item(
    bank: Bank, item_id: UUID, *, routing_number: str, account_number: str, by: Operator
) -> SuspenseItem:
    """Credit an item to its owner's portal, as if it had arrived there now. Raises NotFound, Refused."""
    by.require(Power.MOVE_MONEY)
    item = await get_item(bank.pool, item_id)
    entry = await bank.directory.find("account", f"{routing_number}:{account_number}")
    if entry is None:
        raise NotFound(f"No portal has the account number {account_number}.")
    await bank.engine.submit(
        AssignFromSuspense(
            caller=_CALLER,
            key=_key(f"assign:{entry.object_id}", item_id, by),
            customers=(bank_customer_id(bank.seed), entry.customer_id),
            origin=by.origin,
            item_id=item_id,
            portal_id=entry.object_id,
            pocket_id=await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id),
            references=(item_id,),
            details=await details_for_owner(bank, item, entry.customer_id),
        )
    )
    return await get_item(bank.pool, item_id)


def _key(decision: str, item_id: UUID, by: Operator) -> UUID:
    """Return the key under which a decision is made once.

    The same by another operator, or for another reason, is another decision: the rule refuses it, and nobody is taken
    for who made the first.
    """
    return command_id(f"suspense.{decision}:{by.name}", item_id)
