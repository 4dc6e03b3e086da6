"""What operators do with an item of suspense: return it to its sender, or credit it to its owner.

One proposes it here, and another confirms it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.access.operators.types import Operator, Power
from billfold.freezes.decisions import propose_movement
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.suspense.commands import AssignFromSuspense, ReturnFromSuspense
from billfold.payments.suspense.owner_details import details_for_owner
from billfold.payments.suspense.store import get_item
from billfold.platform import ids
from billfold.platform.errors import NotFound
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.freezes.types import FreezeProposal
    from billfold.ledger.bank import Bank

_CALLER = "operator"
_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"
_DIGITS_SHOWN = 4


async def propose_return(bank: Bank, item_id: UUID, *, reason: str, by: Operator) -> FreezeProposal:
    """Propose to return an item to its sender. Raises NotFound, Refused."""
    by.require(Power.MOVE_MONEY)
    item = await get_item(bank.pool, item_id)
    command = ReturnFromSuspense(
        caller=_CALLER,
        key=ids.new(),
        customers=(bank_customer_id(bank.seed),),
        origin=by.origin,
        item_id=item_id,
        reason=reason,
        references=(item_id,),
    )
    words = f"Return {format_usd(item.amount)} in suspense to the sender by {item.rail}: item {item_id}"
    return await propose_movement(bank, command, about=item_id, words=words, reason=reason, by=by)


async def propose_assignment(
    bank: Bank, item_id: UUID, *, routing_number: str, account_number: str, by: Operator
) -> FreezeProposal:
    """Propose to credit an item to its owner's portal, as if it arrived when this is confirmed.

    Raises NotFound, Refused.
    """
    by.require(Power.MOVE_MONEY)
    item = await get_item(bank.pool, item_id)
    entry = await bank.directory.find("account", f"{routing_number}:{account_number}")
    if entry is None:
        raise NotFound(f"No portal has the account number {account_number}.")
    pocket_id = await bank.pool.fetchval(_POCKET, entry.customer_id, entry.object_id)
    command = AssignFromSuspense(
        caller=_CALLER,
        key=ids.new(),
        customers=(bank_customer_id(bank.seed), entry.customer_id),
        origin=by.origin,
        item_id=item_id,
        portal_id=entry.object_id,
        pocket_id=pocket_id,
        references=(item_id,),
        details=await details_for_owner(bank, item, entry.customer_id),
    )
    account = f"the account that ends in {account_number[-_DIGITS_SHOWN:]}, Pocket {pocket_id}"
    words = f"Credit {format_usd(item.amount)} in suspense to {account}: item {item_id}"
    return await propose_movement(bank, command, about=item_id, words=words, reason=item.reason, by=by)
