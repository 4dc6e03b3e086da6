"""The nodes of a wallet, and one round of work on its chain."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from billfold.accounts.counterparties.ports import OwnWallets
from billfold.accounts.counterparties.store import open_details
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank, Ports
from billfold.payments.crypto.chains import Chain, Chains
from billfold.payments.crypto.nodes import TRANSFER_TOPIC, EvmNode, NodeRefused, NodeUnavailable, topic_of
from billfold.payments.crypto.withdrawals import signing
from billfold.payments.crypto.withdrawals.rules import Objection
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.payments.crypto.withdrawals.store import is_own_address
from billfold.payments.crypto.withdrawals.transactions import Wallet, WalletProblem
from billfold.platform.database.connection import Db
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import Unavailable
from billfold.screening.screening import CurrentList

_UNAVAILABLE = Objection("rail-not-available", "The bank sends nothing on this chain.")
_TOKEN = Objection("wallet-not-payable", "The address is that of a token's contract: what is sent there is lost.")
_OWN = Objection("wallet-not-payable", "The address is one of this bank: pay its Pocket by an on-us transfer.")
_LISTED = Objection("sanction-screen-failed", "The address is on a sanctions list.")


async def find_objection(bank: Bank, conn: Db, chain_name: str, address: str) -> Objection | None:
    """Return why an address of a chain is not paid; None if it may be."""
    chain = bank.ports[Chains].get(chain_name)
    if chain is None or bank.ports.get(Signer) is None:
        return _UNAVAILABLE
    if bank.ports[OwnWallets].is_token(address):
        return _TOKEN
    if await is_own_address(conn, address):
        return _OWN
    return _LISTED if await bank.ports[CurrentList].has_wallet(conn, address) else None


async def find_objection_to(bank: Bank, conn: Db, customer_id: UUID, details: Mapping[str, Any]) -> Objection | None:
    """Return the same for the sealed details of a counterparty. In a transaction, load its key before."""
    data_key = (await bank.ports[DataKeys].load(conn, (customer_id,))).get(customer_id)
    opened = open_details(data_key, details)
    if opened.get("wallet_address") is None:
        return Objection("counterparty-not-verified", "The counterparty has no wallet any more.")
    return await find_objection(bank, conn, opened["chain"], opened["wallet_address"])


class BankWallets:
    """The bank's own addresses, for callers that add counterparties."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def is_token(self, address: str) -> bool:
        """Return whether it is the contract of a token: funds sent there are lost."""
        return any(chain.find_token(address) is not None for chain in self._ports[Chains].values())

    async def pays_from(self, address: str) -> bool:
        """Return whether the bank pays from this wallet. Raises Unavailable."""
        signer = self._ports.get(Signer)
        return signer is not None and address.lower() == (await signer.address()).lower()


_BARE, _WITH_TRANSACTIONS = False, True
_REVERTED = 3
_DEFAULT_PRIORITY_FEE = 1_500_000_000
"""1.5 gwei, if a node makes no suggestion."""


class Receipt(NamedTuple):
    """The result of a transaction in a block. `fee` is the network fee in wei; `logs` as the node has them."""

    block_number: int
    block_hash: str
    is_success: bool
    fee: int
    logs: tuple[dict[str, object], ...]

    def has_transfer(self, token: str, sender: str, recipient: str, *, units: int) -> bool:
        """Return whether the token's contract logged a transfer of exactly these units."""
        topics = [TRANSFER_TOPIC, topic_of(sender), topic_of(recipient)]
        return any(
            str(log.get("address")).lower() == token.lower()
            and [str(each).lower() for each in _list(log.get("topics"))] == topics
            and str(log.get("data")).lower() == f"0x{units:064x}"
            for log in self.logs
        )


class SentTransaction(NamedTuple):
    """A transaction of an address in a block."""

    transaction_hash: str
    to: str
    data: str


class WalletNode(EvmNode):
    """Reads from one node, and sends it signed transactions. Raises NodeUnavailable without a usable response."""

    async def transaction_count(self, address: str, block: int | None = None) -> int:
        """Return the number of an address's transactions in blocks up to this one, or up to the newest."""
        return self._quantity(await self._read("eth_getTransactionCount", address, _tag(block)))

    async def native_balance(self, address: str) -> int:
        """Return the balance of an address in wei."""
        return self._quantity(await self._read("eth_getBalance", address, "latest"))

    async def base_fee(self) -> int:
        """Return the base fee of the newest block, in wei per unit of gas."""
        block = await self._read("eth_getBlockByNumber", "latest", _BARE)
        return self._quantity(block.get("baseFeePerGas") if isinstance(block, dict) else None)

    async def priority_fee(self) -> int:
        """Return the priority fee for quick inclusion, in wei per unit of gas."""
        try:
            return self._quantity(await self.rpc.call("eth_maxPriorityFeePerGas"))
        except NodeRefused:
            return _DEFAULT_PRIORITY_FEE

    async def estimate_gas(self, sender: str, transaction: signing.UnsignedTransaction) -> int | None:
        """Return the gas that a transaction takes; None if it would be reverted."""
        call = {"from": sender, "to": transaction.to, "data": transaction.data}
        try:
            return self._quantity(await self.rpc.call("eth_estimateGas", call))
        except NodeRefused as refusal:
            if refusal.code == _REVERTED or "revert" in refusal.message.lower():
                return None
            raise NodeUnavailable(self.host, f"eth_estimateGas: {refusal}") from None

    async def send(self, raw: str) -> str | None:
        """Send a signed transaction to the node; return its reason if it refuses it."""
        try:
            await self.rpc.call("eth_sendRawTransaction", raw)
        except NodeRefused as refusal:
            return refusal.message
        return None

    async def knows(self, transaction_hash: str) -> bool:
        """Return whether the node has a transaction, in a block or waiting for one."""
        return await self._read("eth_getTransactionByHash", transaction_hash) is not None

    async def find_receipt(self, transaction_hash: str) -> Receipt | None:
        """Return the receipt of a transaction, None unless it is in a block of the node's chain."""
        found = await self._read("eth_getTransactionReceipt", transaction_hash)
        if found is None:
            return None
        if not isinstance(found, dict) or self._hash(found.get("transactionHash")) != transaction_hash:
            raise NodeUnavailable(self.host, "answers with another receipt")
        number, block_hash = self._quantity(found.get("blockNumber")), self._hash(found.get("blockHash"))
        block = await self.find_block(number)
        if block is None or block.hash != block_hash:
            return None
        gas = self._quantity(found.get("gasUsed")) * self._quantity(found.get("effectiveGasPrice"))
        # Rollups charge for their data in addition to gas.
        data_fee = 0 if found.get("l1Fee") is None else self._quantity(found["l1Fee"])
        return Receipt(
            block_number=number,
            block_hash=block_hash,
            is_success=self._quantity(found.get("status")) == 1,
            fee=gas + data_fee,
            logs=tuple(each for each in _list(found.get("logs")) if isinstance(each, dict)),
        )

    async def find_sent(self, address: str, nonce: int, *, last: int) -> SentTransaction | None:
        """Return the transaction of an address with a nonce, in blocks up to `last`."""
        if await self.transaction_count(address, last) <= nonce:
            return None
        low, high, step = last, last, 1
        # Nodes keep the state of recent blocks only.
        while low > 0 and await self.transaction_count(address, low) > nonce:
            low, high, step = max(low - step, 0), low, 2 * step
        while low < high:
            middle = (low + high) // 2
            if await self.transaction_count(address, middle) > nonce:
                high = middle
            else:
                low = middle + 1
        block = await self._read("eth_getBlockByNumber", hex(low), _WITH_TRANSACTIONS)
        for each in _list(block.get("transactions") if isinstance(block, dict) else None):
            if not isinstance(each, dict) or str(each.get("from")).lower() != address.lower():
                continue
            if self._quantity(each.get("nonce")) == nonce:
                data = str(each.get("input") or each.get("data") or "0x").lower()
                return SentTransaction(self._hash(each.get("hash")), str(each.get("to")), data)
        return None


def _tag(block: int | None) -> str:
    return "latest" if block is None else hex(block)


def _list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


Answer = TypeVar("Answer")


class Blocked(Exception):
    """A step cannot continue now; it is retried in the next round."""

    def __init__(self, problem: WalletProblem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round of work: the chain, its nodes, its wallet. `wall` is wall time.

    `problems` are those it ran into; the first one is shown to operators.
    """

    bank: Bank
    chain: Chain
    nodes: Sequence[WalletNode]
    wallet: Wallet
    wall: datetime
    problems: list[Blocked] = field(default_factory=list)

    async def ask_all(self, question: Callable[[WalletNode], Awaitable[Answer]]) -> list[Answer]:
        """Return the answers of all nodes. Raises Blocked if one gives none."""
        return await ask_all(self.nodes, question)

    async def ask_available(self, question: Callable[[WalletNode], Awaitable[Answer]]) -> list[Answer]:
        """Return the answers of the available nodes, and record the others."""
        answers = await asyncio.gather(*map(question, self.nodes), return_exceptions=True)
        given: list[Answer] = []
        for answer in answers:
            if isinstance(answer, NodeUnavailable):
                self.problems.append(Blocked(WalletProblem.NODE_UNAVAILABLE, str(answer)))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                given.append(answer)
        return given

    def blocked_by(self, error: Exception, withdrawal_id: UUID) -> Blocked:
        """Return an unexpected error of one withdrawal as a problem of the wallet: the others continue.

        Raises the error again if it comes from a node or the database.
        """
        if isinstance(error, Blocked):
            return error
        if isinstance(error, NodeUnavailable) or is_shortage(error):
            raise error
        return self.blocked(withdrawal_id, WalletProblem.UNEXPLAINED, error_summary(error))

    def blocked(self, withdrawal_id: UUID, problem: WalletProblem, detail: str) -> Blocked:
        """Return the problem of a withdrawal as a sentence for operators, who may cancel it."""
        return Blocked(problem, f"Withdrawal {withdrawal_id} on {self.chain.name}: {detail}")

    async def sign(self, transaction: signing.UnsignedTransaction, withdrawal_id: UUID) -> signing.Signed:
        """Return a transaction of a withdrawal signed by the wallet's key. Raises Blocked."""
        try:
            return await signing.sign_checked(self.bank.ports[signing.Signer], self.wallet.address, transaction)
        except signing.SignerRefused as refusal:
            raise self.blocked(withdrawal_id, WalletProblem.SIGNER_REFUSES, str(refusal)) from None
        except Unavailable as error:
            raise Blocked(WalletProblem.SIGNER_UNAVAILABLE, str(error)) from None


async def ask_all(nodes: Sequence[WalletNode], question: Callable[[WalletNode], Awaitable[Answer]]) -> list[Answer]:
    """Return the answers of all nodes. Raises Blocked if one gives none."""
    try:
        return await asyncio.gather(*map(question, nodes))
    except NodeUnavailable as error:
        raise Blocked(WalletProblem.NODE_UNAVAILABLE, str(error)) from None
