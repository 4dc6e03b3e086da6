"""The worker of withdrawals: it signs, sends and watches transactions, and reports their results.

There is one task per chain, so that a chain whose nodes are unavailable delays no other.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

import structlog

from billfold.data_keys.keys import DataKey, DataKeys, PartyField
from billfold.ledger.bank import Bank
from billfold.payments.crypto.chains import Chain, Chains, units_of
from billfold.payments.crypto.withdrawals import rules, store, transactions
from billfold.payments.crypto.withdrawals.nonces import current_fees, reserve_nonces
from billfold.payments.crypto.withdrawals.signing import Signer, UnsignedTransaction
from billfold.payments.crypto.withdrawals.transactions import (
    PENDING,
    ChainTransaction,
    Fees,
    Intent,
    OutgoingTransaction,
    Sighting,
    Signature,
    TransactionState,
    Wallet,
    WalletProblem,
)
from billfold.payments.crypto.withdrawals.wallet import Blocked, Receipt, Round, WalletNode, ask_all
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import claimed
from billfold.platform.errors import BillfoldError, Unavailable


async def send_transactions(this: Round) -> int:
    """Sign transactions with a nonce, replace stuck ones, and send all to the nodes; return how many were signed."""
    outgoing = await store.list_outgoing(this.bank.pool, this.chain.name)
    outgoing = [each for each in outgoing if each.reservation.wallet == this.wallet.address]
    if not outgoing:
        return 0
    ring = await this.bank.ports[DataKeys].load(this.bank.pool, {each.transaction.customer_id for each in outgoing})
    signed = 0
    is_first = True  # of those not in a block: the others wait for it, whatever they pay
    for each in outgoing:
        if each.is_mined and each.transaction.requested is None:
            continue
        data_key = ring.get(each.transaction.customer_id)
        try:
            latest = each.latest
            if latest is None or _wants_another(this, each, latest, is_first=is_first):
                latest = await _sign_next(this, each, data_key)
                signed += 1
            await _send_transaction(this, each, latest, data_key=data_key)
        except Exception as error:  # noqa: BLE001 - any error; those before it were sent
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
    """Sign and store the next attempt; return the stored one. Raises Blocked."""
    cap = this.chain.fee_cap_gwei * 10**9
    fees = transactions.fees_for_next(each.latest, await current_fees(this), cap=cap)
    if fees is None:
        _raise_blocked(
            this, each, WalletProblem.FEE_CAP_REACHED, f"A replacement would cost more than {cap} wei per gas."
        )
    # If the customer is stopped between the nonce and the first signature, a transaction that pays nothing uses the
    # nonce.
    transaction, is_unsigned = each.transaction, each.latest is None
    is_canceled = transaction.requested == transactions.OperatorRequest.CANCEL or (is_unsigned and each.is_stopped)
    intent = transactions.intent_of_next(each.latest, is_stopped=is_canceled)
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
        return transactions.cancellation(this.chain.chain_id, reserved.nonce, wallet=reserved.wallet, fees=fees)
    recipient = PartyField.ACCOUNT.open(data_key, each.address)
    token = this.chain.find_token(reserved.token)
    if recipient is None or token is None:
        detail = "Its address was destroyed, or its token is no longer configured."
        _raise_blocked(this, each, WalletProblem.UNEXPLAINED, detail)
    units, gas_limit = units_of(each.cents, token.decimals), reserved.gas_limit
    to = {"token": token.address, "recipient": recipient}
    return transactions.payment(this.chain.chain_id, reserved.nonce, **to, units=units, gas_limit=gas_limit, fees=fees)


async def _send_transaction(
    this: Round, each: OutgoingTransaction, latest: Signature, *, data_key: DataKey | None
) -> None:
    """Send a transaction to the nodes that do not have it. Raises Blocked if none accepts it."""
    raw = PartyField.TEXT.open(data_key, latest.raw)
    if raw is None:
        _raise_blocked(this, each, WalletProblem.UNEXPLAINED, "It was destroyed with its customer's data.")

    async def give(node: WalletNode) -> str | None:
        if await node.knows(latest.transaction_hash):
            return None
        refusal = await node.send(raw)
        # Nodes use different messages for a transaction that they already have.
        return refusal if refusal is None or not await node.knows(latest.transaction_hash) else None

    answers = await this.ask_available(give)
    if any(answer is None for answer in answers):
        await store.mark_sent(this.bank.pool, latest, this.wall)
        if each.transaction.state in {TransactionState.RESERVED, TransactionState.SIGNED}:
            await store.record_sighting(
                this.bank.pool, each.transaction, TransactionState.SUBMITTED, PENDING, now=this.wall
            )
    elif answers:
        _raise_blocked(this, each, WalletProblem.NODE_REFUSES, f"No node accepts it: {answers[0]}")


def _raise_blocked(this: Round, each: OutgoingTransaction, problem: WalletProblem, detail: str) -> NoReturn:
    raise this.blocked(each.transaction.withdrawal_id, problem, detail)


_FAILED: Final = dict.fromkeys((TransactionState.REVERTED, TransactionState.DISPLACED), "INVALID_TRANSFER")
_REASONS: Final = {**_FAILED, TransactionState.CANCELED: "CANCELED"}


async def watch_transactions(this: Round) -> int:
    """Record what nodes report about signed transactions; return how many changed."""
    outgoing = [each for each in await store.list_outgoing(this.bank.pool, this.chain.name) if each.signatures]
    if not outgoing:
        return 0
    ring = await this.bank.ports[DataKeys].load(this.bank.pool, {each.transaction.customer_id for each in outgoing})

    async def see(node: WalletNode, each: OutgoingTransaction, final: int) -> Sighting | Blocked:
        try:
            recipient = PartyField.ACCOUNT.open(ring.get(each.transaction.customer_id), each.address) or "0x"
            return await _read_sighting(this, node, each, recipient=recipient, final=final)
        except Exception as error:  # noqa: BLE001 - it affects only this withdrawal
            return this.blocked_by(error, each.transaction.withdrawal_id)

    async def see_all(node: WalletNode) -> list[Sighting | Blocked]:
        await node.check_chain()
        final = await _final_number(this, node)
        return [await see(node, each, final) for each in outgoing]

    views = await this.ask_available(see_all)
    moved = 0
    for number, each in enumerate(outgoing):
        try:
            moved += await _settle_nonce(this, each, [view[number] for view in views])
        except Exception as error:  # noqa: BLE001 - it affects only this withdrawal
            this.problems.append(this.blocked_by(error, each.transaction.withdrawal_id))
    return moved


async def _settle_nonce(this: Round, each: OutgoingTransaction, seen: Sequence[Sighting | Blocked]) -> bool:
    transaction, sightings = each.transaction, [one for one in seen if not isinstance(one, Blocked)]
    for one in seen:
        if isinstance(one, Blocked):
            raise one
    try:
        found = transactions.agreed_sighting(sightings, nodes=len(this.nodes))
    except transactions.Disagreement:
        detail = "nodes report different outcomes of it."
        this.problems.append(this.blocked(transaction.withdrawal_id, WalletProblem.NODES_DISAGREE, detail))
        return False
    state = transactions.state_of(found)
    if state is None:
        detail = f"{found.transaction_hash} succeeded but did not make its payment."
        this.problems.append(this.blocked(transaction.withdrawal_id, WalletProblem.UNEXPLAINED, detail))
        return False
    if found == PENDING and (not each.is_mined or not sightings):
        return False  # if no node answers, the known state is kept
    return await store.record_sighting(
        this.bank.pool, transaction, state, found, reason=_REASONS.get(state), now=this.wall
    )


async def _final_number(this: Round, node: WalletNode) -> int:
    """Return the number of the newest block that the bank considers final."""
    if this.chain.confirmations is None:
        return (await node.finalized()).number
    return (await node.head()).number - this.chain.confirmations


async def _read_sighting(
    this: Round, node: WalletNode, each: OutgoingTransaction, *, recipient: str, final: int
) -> Sighting:
    """Return one node's view of a nonce."""
    reserved = each.reservation
    token = this.chain.find_token(reserved.token)
    units = 0 if token is None else units_of(each.cents, token.decimals)

    def sight(receipt: Receipt, transaction_hash: str, intent: Intent | None) -> Sighting:
        outcome: TransactionState | None = TransactionState.DISPLACED
        if intent is not None:
            is_paid = receipt.has_transfer(reserved.token, reserved.wallet, recipient, units=units)
            outcome = transactions.outcome_of(intent, is_success=receipt.is_success, is_paid=is_paid)
        number, is_final = receipt.block_number, receipt.block_number <= final
        return Sighting(transaction_hash, number, receipt.block_hash, receipt.fee, outcome, is_final)

    for signature in reversed(each.signatures):
        receipt = await node.find_receipt(signature.transaction_hash)
        if receipt is not None:
            return sight(receipt, signature.transaction_hash, signature.intent)
    if final < 0 or await node.transaction_count(reserved.wallet) <= reserved.nonce:
        return PENDING
    # The nonce was used by a transaction that we did not sign. Until that is final, ours may return.
    found = await node.find_sent(reserved.wallet, reserved.nonce, last=final)
    if found is None or found.transaction_hash in {own.transaction_hash for own in each.signatures}:
        return PENDING
    receipt = await node.find_receipt(found.transaction_hash)
    if receipt is None:
        return PENDING
    is_payment = found.to.lower() == reserved.token.lower() and found.data == transactions.transfer_data(
        recipient, units
    )
    return sight(receipt, found.transaction_hash, Intent.PAY if is_payment else None)


log = structlog.get_logger(__name__)

ROUND_SECONDS: Final = 2.0
"""Polling interval for a chain's nodes while something waits for them."""
_BATCH_SIZE: Final = 100
_SENT = frozenset({TransactionState.SUBMITTED, TransactionState.MINED})


async def report_transactions(this: Round) -> int:
    """Complete, reject or submit withdrawals whose transaction has an unrecorded outcome; return how many."""
    found = await store.list_unreported(this.bank.pool, this.chain.name, _BATCH_SIZE)
    answers = await this.bank.engine.submit_all([_command(each) for each in found])
    failed = [
        this.blocked_by(answer, each.withdrawal_id)
        for each, answer in zip(found, answers, strict=True)
        if isinstance(answer, BillfoldError)
    ]
    this.problems.extend(failed)
    return len(found) - len(failed)


def _command(transaction: ChainTransaction) -> rules.WithdrawalCommand:
    withdrawal_id, final_hash = transaction.withdrawal_id, transaction.transaction_hash
    named: dict[str, Any] = {"withdrawal_id": withdrawal_id, "references": (withdrawal_id,)}
    named |= {"key": withdrawal_id, "customers": (transaction.customer_id,)}
    if transaction.state in _SENT:
        return rules.SubmitWithdrawal(caller="crypto:sent", **named)
    named["caller"] = "crypto:final"
    if transaction.state == TransactionState.CONFIRMED:
        return rules.CompleteWithdrawal(transaction_hash=str(final_hash), **named)
    return rules.RejectWithdrawal(reason=str(transaction.reason), transaction_hash=final_hash, **named)


_STEPS: Final = (
    report_transactions,
    watch_transactions,
    send_transactions,
    reserve_nonces,
    send_transactions,
    report_transactions,
)


class ChainSender:
    """Sends the withdrawals of one chain. One process at a time does so; running twice sends nothing twice."""

    def __init__(self, chain: Chain, *, pause_seconds: float = ROUND_SECONDS) -> None:
        self._chain = chain
        self._nodes = [WalletNode(chain, url) for url in chain.rpc_urls]
        self._pause_seconds = pause_seconds
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """Do one round if it is due and there is work: a task of the worker."""
        if monotonic() < self._next_at:
            return 0
        self._next_at = monotonic() + self._pause_seconds
        return await self.work(bank)

    async def work(self, bank: Bank) -> int:
        """Do one round; return how much was done."""
        name = self._chain.name
        if bank.ports.get(Signer) is None or not await store.has_work(bank.pool, name):
            return 0
        async with claimed(bank.pool, f"crypto withdrawals {name}") as is_ours:
            return await self._work(bank) if is_ours else 0

    async def aclose(self) -> None:
        """Close the connections to the nodes."""
        for node in self._nodes:
            await node.aclose()

    async def _work(self, bank: Bank) -> int:
        wallet = await self._wallet(bank)
        if wallet is None:
            return 0
        this = Round(bank=bank, chain=self._chain, nodes=self._nodes, wallet=wallet, wall=wall_now())
        done = 0
        for step in _STEPS:
            try:
                done += await step(this)
            except Blocked as blocked:
                this.problems.append(blocked)
        first = this.problems[0] if this.problems else None
        await _keep_problem(bank, wallet, first, now=this.wall)
        return done

    async def _wallet(self, bank: Bank) -> Wallet | None:
        """Return the signer's wallet, which is recorded on first use; None if neither signer nor nodes answer."""
        try:
            address = await bank.ports[Signer].address()
            found = await store.find_wallet(bank.pool, self._chain.name, address)
            if found is None:
                used = await self._count_agreed(address)
                await store.add_wallet(bank.pool, self._chain.name, address, first_nonce=used)
                found = await store.find_wallet(bank.pool, self._chain.name, address)
        except Unavailable as error:
            for known in await store.list_wallets(bank.pool):
                if known.chain == self._chain.name:
                    blocked = Blocked(WalletProblem.SIGNER_UNAVAILABLE, str(error))
                    await _keep_problem(bank, known, blocked, now=wall_now())
            return None
        except Blocked as problem:
            log.warning("crypto_wallet_unavailable", chain=self._chain.name, error=str(problem))
            return None
        return found

    async def _count_agreed(self, address: str) -> int:
        """Return how many transactions the wallet has sent. Raises Blocked unless all nodes agree."""
        counts = set(await ask_all(self._nodes, lambda node: node.transaction_count(address)))
        if len(counts) > 1:
            raise Blocked(WalletProblem.NODES_DISAGREE, "Nodes report different transaction counts of the wallet.")
        return counts.pop()


async def _keep_problem(bank: Bank, wallet: Wallet, blocked: Blocked | None, *, now: datetime) -> None:
    problem, detail = (None, None) if blocked is None else (blocked.problem, blocked.detail)
    if not await store.set_problem(bank.pool, wallet, problem, detail, now=now):
        return
    if blocked is None:
        log.info("crypto_wallet_pays_again", chain=wallet.chain)
    else:
        log.warning("crypto_wallet_blocked", chain=wallet.chain, problem=problem, detail=detail)


def withdrawal_senders(chains: Chains) -> tuple[ChainSender, ...]:
    """Return the task of each chain."""
    return tuple(map(ChainSender, chains.values()))
