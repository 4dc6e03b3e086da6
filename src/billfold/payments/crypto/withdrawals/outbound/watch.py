"""Transactions are followed until they are final: every node of the chain must report the same end of a nonce."""

from __future__ import annotations

from billfold.data_keys.keys import DataKeys
from typing import TYPE_CHECKING, Final

from billfold.data_keys.types import PartyField
from billfold.payments.crypto.chains.rules import units_of
from billfold.payments.crypto.withdrawals.outbound.round import Blocked
from billfold.payments.crypto.withdrawals.rules.evidence import (
    PENDING,
    Depth,
    Disagreement,
    Outcome,
    Sighting,
    agreed,
    outcome_of,
    state_of,
)
from billfold.payments.crypto.withdrawals.rules.transactions import transfer_data
from billfold.payments.crypto.withdrawals.store import transactions as store
from billfold.payments.crypto.withdrawals.types import Intent, TransactionState, WalletProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from billfold.payments.crypto.withdrawals.outbound.round import Round
    from billfold.payments.crypto.withdrawals.types import OutgoingTransaction
    from billfold.payments.crypto.withdrawals.wallet_node import Receipt, WalletNode

_REASONS: Final = {
    TransactionState.REVERTED: "INVALID_TRANSFER",
    TransactionState.CANCELED: "CANCELED",
    TransactionState.DISPLACED: "INVALID_TRANSFER",
}


async def watch_transactions(this: Round) -> int:
    """Record what nodes report of what was signed; return how many transactions moved."""
    outgoing = [each for each in await store.list_outgoing(this.bank.pool, this.chain.name) if each.signatures]
    if not outgoing:
        return 0
    ring = await this.bank.ports[DataKeys].load(this.bank.pool, {each.transaction.customer_id for each in outgoing})

    async def see(node: WalletNode, each: OutgoingTransaction, final: int) -> Sighting | Blocked:
        try:
            recipient = PartyField.ACCOUNT.open(ring.get(each.transaction.customer_id), each.address) or "0x"
            return await _see(this, node, each, recipient=recipient, final=final)
        except Exception as error:  # noqa: BLE001 - it is of this withdrawal alone
            return this.blocked_by(error, each.transaction.withdrawal_id)

    async def see_all(node: WalletNode) -> list[Sighting | Blocked]:
        await node.check_chain()
        final = await _final_number(this, node)
        return [await see(node, each, final) for each in outgoing]

    views = await this.ask_available(see_all)
    moved = 0
    for number, each in enumerate(outgoing):
        try:
            moved += await _settle(this, each, [view[number] for view in views])
        except Exception as error:  # noqa: BLE001 - it is of this withdrawal alone
            this.problems.append(this.blocked_by(error, each.transaction.withdrawal_id))
    return moved


async def _settle(this: Round, each: OutgoingTransaction, seen: Sequence[Sighting | Blocked]) -> bool:
    transaction, sightings = each.transaction, [one for one in seen if not isinstance(one, Blocked)]
    for one in seen:
        if isinstance(one, Blocked):
            raise one
    try:
        found = agreed(sightings, nodes=len(this.nodes))
    except Disagreement:
        detail = this.detail_of(transaction.withdrawal_id, "nodes report different ends of it.")
        this.problems.append(Blocked(WalletProblem.NODES_DISAGREE, detail))
        return False
    state = state_of(found)
    if state is None:
        end = f"{found.transaction_hash} succeeded and has not paid what it says."
        detail = this.detail_of(transaction.withdrawal_id, end)
        this.problems.append(Blocked(WalletProblem.UNEXPLAINED, detail))
        return False
    if found == PENDING and transaction.state != TransactionState.MINED:
        return False
    if found == PENDING and not sightings:
        return False  # no node answers: what was known stays
    return await store.move(this.bank.pool, transaction, state, found, reason=_REASONS.get(state), now=this.wall)


async def _final_number(this: Round, node: WalletNode) -> int:
    """Return the newest block that is final for the bank."""
    if this.chain.confirmations is None:
        return (await node.finalized()).number
    return (await node.head()).number - this.chain.confirmations


async def _see(this: Round, node: WalletNode, each: OutgoingTransaction, *, recipient: str, final: int) -> Sighting:
    """Return what one node has of a nonce."""
    reserved = each.reservation
    token = this.chain.find_token(reserved.token)
    units = 0 if token is None else units_of(each.cents, token.decimals)
    for signature in reversed(each.signatures):
        receipt = await node.find_receipt(signature.transaction_hash)
        if receipt is not None:
            is_paid = receipt.has_transfer(reserved.token, reserved.wallet, recipient, units=units)
            outcome = outcome_of(signature.intent, is_success=receipt.is_success, is_paid=is_paid)
            return _sighting(receipt, signature.transaction_hash, outcome, final=final)
    if final < 0 or await node.transaction_count(reserved.wallet) <= reserved.nonce:
        return PENDING
    # The nonce is used, and not by what we signed. Until that is final, ours may come back.
    found = await node.find_sent(reserved.wallet, reserved.nonce, last=final)
    if found is None or found.transaction_hash in {own.transaction_hash for own in each.signatures}:
        return PENDING
    receipt = await node.find_receipt(found.transaction_hash)
    if receipt is None:
        return PENDING
    is_payment = found.to.lower() == reserved.token.lower() and found.data == transfer_data(recipient, units)
    is_paid = receipt.has_transfer(reserved.token, reserved.wallet, recipient, units=units)
    outcome = Outcome.DISPLACED
    if is_payment:
        outcome = outcome_of(Intent.PAY, is_success=receipt.is_success, is_paid=is_paid)
    return _sighting(receipt, found.transaction_hash, outcome, final=final)


def _sighting(receipt: Receipt, transaction_hash: str, outcome: Outcome, *, final: int) -> Sighting:
    return Sighting(
        Depth.FINAL if receipt.block_number <= final else Depth.MINED,
        outcome,
        transaction_hash,
        receipt.block_number,
        receipt.block_hash,
        receipt.fee,
    )
