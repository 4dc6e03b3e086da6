"""The worker of withdrawals: one task per chain, so that a chain whose nodes are away delays no other."""

from datetime import datetime
from typing import Any, Final

import structlog

from billfold.ledger.bank import Bank
from billfold.payments.crypto.chains import Chain, Chains
from billfold.payments.crypto.withdrawals import commands, store
from billfold.payments.crypto.withdrawals.nonces import reserve_nonces
from billfold.payments.crypto.withdrawals.sending import send_transactions, watch_transactions
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.payments.crypto.withdrawals.transactions import ChainTransaction, TransactionState, Wallet, WalletProblem
from billfold.payments.crypto.withdrawals.wallet import Blocked, Round, WalletNode, ask_all
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import claimed
from billfold.platform.errors import BillfoldError, Unavailable

log = structlog.get_logger(__name__)

ROUND_SECONDS: Final = 2.0
"""How often the nodes of a chain are asked while something waits for them."""
_BATCH_SIZE: Final = 100
_SENT = frozenset({TransactionState.SUBMITTED, TransactionState.MINED})


async def report_transactions(this: Round) -> int:
    """Complete, reject or submit the withdrawals that do not say yet what became of them; return how many."""
    found = await store.list_unreported(this.bank.pool, this.chain.name, _BATCH_SIZE)
    answers = await this.bank.engine.submit_all([_command(each) for each in found])
    failed = [
        this.blocked_by(answer, each.withdrawal_id)
        for each, answer in zip(found, answers, strict=True)
        if isinstance(answer, BillfoldError)
    ]
    this.problems.extend(failed)
    return len(found) - len(failed)


def _command(transaction: ChainTransaction) -> commands.WithdrawalCommand:
    withdrawal_id, final_hash = transaction.withdrawal_id, transaction.transaction_hash
    named: dict[str, Any] = {"withdrawal_id": withdrawal_id, "references": (withdrawal_id,)}
    named |= {"key": withdrawal_id, "customers": (transaction.customer_id,)}
    if transaction.state in _SENT:
        return commands.SubmitWithdrawal(caller="crypto:sent", **named)
    named["caller"] = "crypto:final"
    if transaction.state == TransactionState.CONFIRMED:
        return commands.CompleteWithdrawal(transaction_hash=str(final_hash), **named)
    return commands.RejectWithdrawal(reason=str(transaction.reason), transaction_hash=final_hash, **named)


_STEPS: Final = (
    report_transactions,
    watch_transactions,
    send_transactions,
    reserve_nonces,
    send_transactions,
    report_transactions,
)


class ChainSender:
    """Sends the withdrawals of one chain. One process at a time does so; doing it twice sends nothing twice."""

    def __init__(self, chain: Chain, *, pause_seconds: float = ROUND_SECONDS) -> None:
        self._chain = chain
        self._nodes = [WalletNode(chain, url) for url in chain.rpc_urls]
        self._pause_seconds = pause_seconds
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """A task of the worker: do one round if it is time and there is something to do."""
        if monotonic() < self._next_at:
            return 0
        self._next_at = monotonic() + self._pause_seconds
        return await self.work(bank)

    async def work(self, bank: Bank) -> int:
        """Do one round; return how many things were done."""
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
        """Return the wallet of the signer, which is recorded when it is used first; None while nobody answers."""
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
            raise Blocked(WalletProblem.NODES_DISAGREE, "Nodes count different transactions of the wallet.")
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
