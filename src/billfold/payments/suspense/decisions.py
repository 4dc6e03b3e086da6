"""Decisions of operators on items in suspense: return to the sender, credit to the owner, or write off.

One operator proposes, and another confirms.
"""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec

from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.store import FreezeProposal
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Direction, Rail
from billfold.payments.return_codes import RETURN_REASONS
from billfold.payments.suspense import rules
from billfold.payments.suspense.store import get_item
from billfold.payments.wires.iso20022.types import CreditTransfer, PaymentReturn
from billfold.payments.wires.messages import open_message, payment_details, seal_message
from billfold.platform import ids
from billfold.platform.errors import InvalidInput, NotFound
from billfold.platform.money import format_usd

_IDENTIFICATION = "individual_identification_number"


async def details_for_owner(bank: Bank, item: rules.SuspenseItem, owner: UUID) -> dict[str, Any]:
    """Return the details of an item, sealed for the customer to whom it is assigned."""
    keys = await PaymentKeys.prepare(bank, (owner,))
    details: dict[str, Any] = msgspec.json.decode(item.details)
    own = keys.of(owner)

    def plain(name: str) -> str | None:
        text = details.get(name)
        return None if text is None else keys.open(PartyField.TEXT, item.customer_id, text)

    if "message" not in details:
        identification = plain(_IDENTIFICATION)
        return details | {_IDENTIFICATION: identification and PartyField.TEXT.seal(own, identification)}
    opened = open_message(keys, item.customer_id, details["message"])
    message = msgspec.convert(opened, CreditTransfer | PaymentReturn)
    if isinstance(message, PaymentReturn):
        return details | {"message": seal_message(own, message)}
    return details | payment_details(own, message, plain("description"), details.get("omad"))


_POCKET = """
SELECT p.pocket_id, p.name, c.name AS customer
  FROM portal o JOIN pocket p ON p.customer_id = o.customer_id AND p.pocket_id = o.pocket_id
  JOIN customer c ON c.customer_id = o.customer_id
 WHERE o.customer_id = $1 AND o.portal_id = $2
"""
_DIGITS_SHOWN = 4
_RETURN_CODE = re.compile(r"R\d\d$")


async def propose_return(
    bank: Bank, item_id: UUID, *, reason: str, by: Operator, by_hand: bool = False
) -> FreezeProposal:
    """Propose to return an item to its sender, with a return reason of its rail.

    `by_hand` is for items that no message of ours can return: operators have returned it, and `reason` states how.

    Raises NotFound, InvalidInput, Refused.
    """
    by.require(Power.MOVE_MONEY)
    item = await get_item(bank.pool, item_id)
    if item.rail == Rail.ACH and not by_hand:
        _require_return_code(item, reason)
    how = "Record the return by hand of" if by_hand else "Return"
    words = f"{how} {_amount_of(item)} in suspense to the sender by {item.rail}"
    fields = {"reason": reason, "by_hand": by_hand}
    return await _propose(bank, rules.ReturnFromSuspense, item, words=words, why=reason, by=by, **fields)


async def propose_write_off(bank: Bank, item_id: UUID, *, reason: str, by: Operator) -> FreezeProposal:
    """Propose to post a debit, or an item of the card rail, to the bank's losses.

    Raises NotFound, InvalidInput, Refused.
    """
    by.require(Power.MOVE_MONEY)
    item = await get_item(bank.pool, item_id)
    words = f"Write off {_amount_of(item)} in suspense, which came by {item.rail}"
    return await _propose(bank, rules.WriteOffFromSuspense, item, words=words, why=reason, by=by, reason=reason)


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
    pocket = await bank.pool.fetchrow(_POCKET, entry.customer_id, entry.object_id)
    assert pocket is not None
    account = f"the account that ends in {account_number[-_DIGITS_SHOWN:]}, {pocket['name']} of {pocket['customer']}"
    return await _propose(
        bank,
        rules.AssignFromSuspense,
        item,
        entry.customer_id,
        words=f"Credit {format_usd(item.amount)} in suspense to {account}",
        why=item.reason,
        by=by,
        portal_id=entry.object_id,
        pocket_id=pocket["pocket_id"],
        details=await details_for_owner(bank, item, entry.customer_id),
    )


async def _propose(
    bank: Bank,
    command: Callable[..., Command],
    item: rules.SuspenseItem,
    *owner: UUID,
    words: str,
    why: str,
    by: Operator,
    **fields: Any,
) -> FreezeProposal:
    """Propose a command on an item, of the bank and its `owner` if it gets one."""
    fields |= {"item_id": item.item_id, "references": (item.item_id,)}
    customers = (bank.own_id, *owner)
    made = command(caller="operator", key=ids.new(), customers=customers, origin=by.origin, **fields)
    return await propose_movement(bank, made, about=item.item_id, words=words, reason=why, by=by)


def _require_return_code(item: rules.SuspenseItem, reason: str) -> None:
    """Refuse a code that is not a return reason, and any other code for a dishonored return."""
    answer = msgspec.json.decode(item.details).get("answer")
    if answer is None or not _RETURN_CODE.match(reason) or reason == answer["reason"]:
        return
    if reason not in RETURN_REASONS:
        raise InvalidInput.at("reason", msg=f"must be one of {', '.join(sorted(RETURN_REASONS))}")
    if answer["reason"] not in RETURN_REASONS:
        raise InvalidInput.at("reason", msg=f"must be {answer['reason']}: it goes back as a dishonored return")


def _amount_of(item: rules.SuspenseItem) -> str:
    kind = "a debit of " if item.direction == Direction.DEBIT else ""
    return f"{kind}{format_usd(item.amount)}"
