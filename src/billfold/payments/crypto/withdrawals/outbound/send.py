"""Transactions are signed, sent, sent again when a node has lost them, and replaced when they are stuck.

What was signed first is stored first: after a crash the same bytes are sent. A replacement has the same nonce, so that
at most one of both is ever in a block.
"""

from __future__ import annotations

from billfold.data_keys.keys import DataKeys
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from billfold.data_keys.types import PartyField
from billfold.payments.crypto.chains.rules import units_of
from billfold.payments.crypto.withdrawals.outbound.reserve import current_fees
from billfold.payments.crypto.withdrawals.outbound.round import Blocked
from billfold.payments.crypto.withdrawals.rules import transactions as rules
from billfold.payments.crypto.withdrawals.rules.evidence import PENDING
from billfold.payments.crypto.withdrawals.store import transactions as store
from billfold.payments.crypto.withdrawals.types import (
    Intent,
    OperatorRequest,
    Signature,
    TransactionState,
    WalletProblem,
)

if TYPE_CHECKING:
    from billfold.data_keys.types import DataKey
    from billfold.payments.crypto.withdrawals.outbound.round import Round
    from billfold.payments.crypto.withdrawals.ports import UnsignedTransaction
    from billfold.payments.crypto.withdrawals.rules.transactions import Fees
    from billfold.payments.crypto.withdrawals.types import OutgoingTransaction
    from billfold.payments.crypto.withdrawals.wallet_node import WalletNode


async def send_transactions(this: Round) -> int:
    """Sign what has a nonce, replace what is stuck, and see to it that nodes have it all; return what was signed."""
    outgoing = await store.list_outgoing(this.bank.pool, this.chain.name)
    outgoing = [each for each in outgoing if each.reservation.wallet == this.wallet.address]
    if not outgoing:
        return 0
    ring = await this.bank.ports[DataKeys].load(this.bank.pool, {each.transaction.customer_id for each in outgoing})
    signed = 0
    is_first = True  # of those that are in no block: the others wait for it whatever they pay
    for each in outgoing:
        if each.transaction.state == TransactionState.MINED and each.transaction.requested is None:
            continue
        data_key = ring.get(each.transaction.customer_id)
        try:
            latest = each.latest
            if latest is None or _wants_another(this, each, latest, is_first=is_first):
                latest = await _sign_next(this, each, data_key)
                signed += 1
            await _send(this, each, latest, data_key=data_key)
        except Exception as error:  # noqa: BLE001 - whatever it is, those before it were sent
            this.problems.append(this.blocked_by(error, each.transaction.withdrawal_id))
            if each.latest is None:
                break  # those after it cannot be mined before it
        is_first = False
    return signed


def _wants_another(this: Round, each: OutgoingTransaction, latest: Signature, *, is_first: bool) -> bool:
    if each.transaction.requested is not None:
        return True
    waited = None if latest.sent_at is None else this.wall - latest.sent_at
    return is_first and waited is not None and waited >= timedelta(seconds=this.chain.replace_after_seconds)


async def _sign_next(this: Round, each: OutgoingTransaction, data_key: DataKey | None) -> Signature:
    """Sign and store the next attempt; return the one that is stored. Raises Blocked."""
    cap = this.chain.fee_cap_gwei * 10**9
    fees = rules.fees_for_next(each.latest, await current_fees(this), cap=cap)
    if fees is None:
        _complain(this, each, WalletProblem.FEE_CAP_REACHED, f"A replacement would cost more than {cap} wei per gas.")
    # Who is stopped between the nonce and the first signature is not paid: the nonce is used up by paying nobody.
    is_canceled = each.transaction.requested == OperatorRequest.CANCEL or (each.latest is None and each.is_stopped)
    intent = rules.intent_of_next(each.latest, is_stopped=is_canceled)
    transaction = each.transaction
    unsigned = _unsigned(this, each, data_key, intent=intent, fees=fees)
    signed = await this.sign(unsigned, transaction.withdrawal_id)
    assert data_key is not None
    signature = Signature(
        customer_id=transaction.customer_id,
        withdrawal_id=transaction.withdrawal_id,
        attempt=len(each.signatures) + 1,
        intent=intent,
        transaction_hash=signed.transaction_hash,
        max_fee=fees.max_fee,
        priority_fee=fees.priority_fee,
        raw=PartyField.TEXT.seal(data_key, signed.raw),
        signed_at=this.wall,
    )
    async with this.bank.pool.acquire() as conn, conn.transaction():
        if await store.keep_signature(conn, signature):
            return signature
    key = (transaction.customer_id, transaction.withdrawal_id)
    return (await store.list_signatures(this.bank.pool, [key]))[key][-1]


def _unsigned(
    this: Round, each: OutgoingTransaction, data_key: DataKey | None, *, intent: Intent, fees: Fees
) -> UnsignedTransaction:
    reserved = each.reservation
    if intent == Intent.CANCEL:
        return rules.cancellation(this.chain.chain_id, reserved.nonce, wallet=reserved.wallet, fees=fees)
    recipient = PartyField.ACCOUNT.open(data_key, each.address)
    token = this.chain.find_token(reserved.token)
    if recipient is None or token is None:
        _complain(
            this, each, WalletProblem.UNEXPLAINED, "Its address was destroyed, or its token is configured no more."
        )
    return rules.payment(
        this.chain.chain_id,
        reserved.nonce,
        token=token.address,
        recipient=recipient,
        units=units_of(each.cents, token.decimals),
        gas_limit=reserved.gas_limit,
        fees=fees,
    )


async def _send(this: Round, each: OutgoingTransaction, latest: Signature, *, data_key: DataKey | None) -> None:
    """Give a transaction to the nodes that do not have it. Raises Blocked when none takes it."""
    raw = PartyField.TEXT.open(data_key, latest.raw)
    if raw is None:
        _complain(this, each, WalletProblem.UNEXPLAINED, "It was destroyed with its customer's data.")

    async def give(node: WalletNode) -> str | None:
        if await node.knows(latest.transaction_hash):
            return None
        refusal = await node.send(raw)
        # Nodes word it differently that they have it already.
        return refusal if refusal is None or not await node.knows(latest.transaction_hash) else None

    answers = await this.ask_available(give)
    if any(answer is None for answer in answers):
        await store.mark_sent(this.bank.pool, latest, this.wall)
        if each.transaction.state in {TransactionState.RESERVED, TransactionState.SIGNED}:
            await store.move(this.bank.pool, each.transaction, TransactionState.SUBMITTED, PENDING, now=this.wall)
    elif answers:
        _complain(this, each, WalletProblem.NODE_REFUSES, f"No node takes it: {answers[0]}")


def _complain(this: Round, each: OutgoingTransaction, problem: WalletProblem, detail: str) -> NoReturn:
    raise Blocked(problem, this.detail_of(each.transaction.withdrawal_id, detail))
