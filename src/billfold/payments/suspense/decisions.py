"""What operators do with an item of suspense: return it to its sender, credit it to its owner, or write it off.

One proposes it here, and another confirms it.
"""

import re
from typing import Any
from uuid import UUID

import msgspec

from billfold.data_keys.data_key import PartyField
from billfold.data_keys.keys import PaymentKeys
from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.types import FreezeProposal
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Direction, Rail
from billfold.payments.return_codes import RETURN_REASONS
from billfold.payments.suspense.commands import AssignFromSuspense, ReturnFromSuspense, WriteOffFromSuspense
from billfold.payments.suspense.store import get_item
from billfold.payments.suspense.types import SuspenseItem
from billfold.payments.wires.iso20022.types import CreditTransfer, PaymentReturn
from billfold.payments.wires.sealed_messages import open_message, payment_details, seal_message
from billfold.platform import ids
from billfold.platform.errors import InvalidInput, NotFound
from billfold.platform.money import format_usd

_IDENTIFICATION = "individual_identification_number"


async def details_for_owner(bank: Bank, item: SuspenseItem, owner: UUID) -> dict[str, Any]:
    """Return the details of an item, sealed for the customer whom it is assigned to."""
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


_CALLER = "operator"
_POCKET = "SELECT pocket_id FROM portal WHERE customer_id = $1 AND portal_id = $2"
_DIGITS_SHOWN = 4
_RETURN_CODE = re.compile(r"R\d\d$")


async def propose_return(
    bank: Bank, item_id: UUID, *, reason: str, by: Operator, by_hand: bool = False
) -> FreezeProposal:
    """Propose to return an item to its sender, under a reason of its rail.

    `by_hand` is for what no message of ours returns: people have returned it, and `reason` says how.

    Raises NotFound, InvalidInput, Refused.
    """
    by.require(Power.MOVE_MONEY)
    item = await get_item(bank.pool, item_id)
    if item.rail == Rail.ACH and not by_hand:
        _require_return_code(item, reason)
    command = ReturnFromSuspense(
        caller=_CALLER,
        key=ids.new(),
        customers=(bank_customer_id(bank.seed),),
        origin=by.origin,
        item_id=item_id,
        reason=reason,
        by_hand=by_hand,
        references=(item_id,),
    )
    how = "Say that people have returned" if by_hand else "Return"
    words = f"{how} {_amount_of(item)} in suspense to the sender by {item.rail}: item {item_id}"
    return await propose_movement(bank, command, about=item_id, words=words, reason=reason, by=by)


async def propose_write_off(bank: Bank, item_id: UUID, *, reason: str, by: Operator) -> FreezeProposal:
    """Propose to post a debit, or an item of the card rail, to the bank's losses.

    Raises NotFound, InvalidInput, Refused.
    """
    by.require(Power.MOVE_MONEY)
    item = await get_item(bank.pool, item_id)
    command = WriteOffFromSuspense(
        caller=_CALLER,
        key=ids.new(),
        customers=(bank_customer_id(bank.seed),),
        origin=by.origin,
        item_id=item_id,
        reason=reason,
        references=(item_id,),
    )
    words = f"Write off {_amount_of(item)} in suspense, which came by {item.rail}: item {item_id}"
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


def _require_return_code(item: SuspenseItem, reason: str) -> None:
    """Refuse a code that is none of returns, and any for a return of ours that dishonors another."""
    answer = msgspec.json.decode(item.details).get("answer")
    if answer is None or not _RETURN_CODE.match(reason) or reason == answer["reason"]:
        return
    if reason not in RETURN_REASONS:
        raise InvalidInput.at("reason", msg=f"must be one of {', '.join(sorted(RETURN_REASONS))}")
    if answer["reason"] not in RETURN_REASONS:
        raise InvalidInput.at("reason", msg=f"must be {answer['reason']}: it goes back as a dishonored return")


def _amount_of(item: SuspenseItem) -> str:
    kind = "a debit of " if item.direction == Direction.DEBIT else ""
    return f"{kind}{format_usd(item.amount)}"
