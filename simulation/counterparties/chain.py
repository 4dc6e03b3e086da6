"""A chain and its three nodes: one at a time is down, lags, lies or repeats; blocks are replaced, calls are lost.

Its book says which units came to whom. What was dropped with a block is gone; below a final block everything returns.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from eth_account import Account
from eth_hash.auto import keccak

from billfold.payments.crypto import nodes
from billfold.payments.crypto.chains import Chain, Chains, Token, checked_chains
from billfold.payments.crypto.nodes import TRANSFER_TOPIC, NodeRefused, NodeUnavailable, topic_of
from billfold.payments.crypto.withdrawals.signing import UnsignedTransaction, read_signed
from billfold.platform.errors import Unavailable
from billfold.sandbox.chain.faucet import CHAIN_ID, CHAIN_NAME, DEPOSIT_XPUB, TEST_DOLLAR, TRANSFER
from billfold.wiring import providers
from simulation.faults import Faults

URLS = tuple(f"https://node{number}.example" for number in (1, 2, 3))
FINAL = 2
"""Blocks above one that is final."""
BLOCK_SECONDS, LAG = 6.0, 3
TROUBLES = ("down", "lags", "lies", "doubles")
ETHER, GAS, FEE = hex(10**24), hex(60_000), hex(10**9)
BUMP_PERCENT = 110
_ACCOUNT = Account.from_key(keccak(b"the wallet of a simulated bank"))
WALLET = str(_ACCOUNT.address)


class Transfer(NamedTuple):
    """A transaction: units of the token from one address to another; none if it only takes a nonce."""

    hash: str
    sender: str
    recipient: str
    units: int
    nonce: int = 0
    fee: int = 0


class Block(NamedTuple):
    """A block with its transactions, and the balances after it."""

    hash: str
    parent: str
    transfers: tuple[Transfer, ...]
    balances: Counter[str]


class SimulatedChain:
    """The chain. `run` makes its blocks."""

    def __init__(self, random: Random, faults: Faults) -> None:
        self.random, self.faults = random, faults
        self.blocks = [Block(self._hash(), "0x" + "00" * 32, (), Counter({WALLET.lower(): 10**15}))]
        self.pool: list[Transfer] = []
        self.trouble: dict[str, str] = {}
        token = Token(asset="USDC", address=TEST_DOLLAR, decimals=6)
        chain = Chain(name=CHAIN_NAME, chain_id=CHAIN_ID, rpc_urls=URLS, tokens=(token,), xpub=DEPOSIT_XPUB)
        wiring: Any = providers
        wiring.chains_of = lambda _: Chains(checked_chains([chain]))
        wiring.signer_of = lambda *_: Signer(self)
        rpc: Any = nodes
        rpc.JsonRpcClient = lambda url, **_: Node(self, url)

    @property
    def height(self) -> int:
        """The number of the newest block."""
        return len(self.blocks) - 1

    @property
    def unfinished(self) -> int:
        """Return how many transactions are not final."""
        return len(self.pool) + sum(len(each.transfers) for each in self.blocks[-FINAL:])

    @property
    def transfers(self) -> Iterator[tuple[int, Transfer]]:
        """The transactions of all blocks, each with its block's number."""
        return ((number, each) for number, block in enumerate(self.blocks) for each in block.transfers)

    def pay(self, recipient: str, units: int) -> None:
        """Send units to an address of the bank."""
        self.pool.append(Transfer(self._hash(), "0x" + self.random.randbytes(20).hex(), recipient.lower(), units))

    def send(self, raw: str) -> str:
        """Take a signed transaction of the bank into the pool. Raises NodeRefused."""
        signed, sender = read_signed(raw)
        hash_, data = "0x" + keccak(bytes.fromhex(raw[2:])).hex(), signed.data
        is_payment = signed.to == TEST_DOLLAR and data.startswith(TRANSFER)
        recipient, units = ("0x" + data[34:74], int(data[74:], 16)) if is_payment else ("", 0)
        made = Transfer(hash_, sender.lower(), recipient, units, signed.nonce, signed.max_fee)
        earlier = next((each for each in self.pool if (each.sender, each.nonce) == made[1:5:3]), None)
        if signed.nonce < self.nonce(self.height):
            raise NodeRefused(-32000, "nonce too low")
        if earlier is not None and made.fee * 100 < earlier.fee * BUMP_PERCENT:
            raise NodeRefused(-32000, "replacement transaction underpriced")
        if earlier is not None:
            self.pool.remove(earlier)
        self.pool.append(made)
        return hash_

    def nonce(self, number: int) -> int:
        """Return how many transactions the bank has in blocks up to this one."""
        return sum(each.sender == WALLET.lower() for at, each in self.transfers if at <= number)

    async def run(self) -> None:
        """Make blocks without end, as chains do, replace some, and let a node misbehave."""
        while True:
            await asyncio.sleep(self.random.random() * BLOCK_SECONDS)
            rate = 10 * self.faults.rate
            self._mine()
            if self.random.random() < rate:
                self._reorganize()
            if self.random.random() < rate or not rate:
                self.trouble = {}
            if self.random.random() < rate:
                trouble = self.random.choice(TROUBLES)
                self.trouble = {self.random.choice(URLS): trouble}
                self.faults.happened[f"node {trouble}"] += 1

    def _mine(self) -> None:
        taken, balances = [], self.blocks[-1].balances.copy()
        own = self.nonce(self.height)
        for each in sorted(self.pool, key=lambda each: each.nonce):
            if each.sender == WALLET.lower():
                if each.nonce < own:
                    self.pool.remove(each)
                if each.nonce != own:
                    continue
                own += 1
                balances[each.sender] -= each.units
            self.pool.remove(each)
            balances[each.recipient] += each.units
            taken.append(each)
        self.blocks.append(Block(self._hash(), self.blocks[-1].hash, tuple(taken), balances))

    def _reorganize(self) -> None:
        """Replace blocks. What only recent ones had may be dropped, what was final comes back."""
        depth = min(self.random.choice((1, 1, 2, 2, 4)), self.height)
        gone = [each for block in self.blocks[len(self.blocks) - depth :] for each in block.transfers]
        del self.blocks[len(self.blocks) - depth :]
        is_dropped = depth <= FINAL and self.random.random() < 1 / 3
        self.pool += [] if is_dropped else gone
        self.faults.happened["blocks replaced"] += 1
        for _ in range(depth):
            self.blocks.append(self.blocks[-1]._replace(hash=self._hash(), parent=self.blocks[-1].hash, transfers=()))

    def _hash(self) -> str:
        return "0x" + self.random.randbytes(32).hex()


class Signer:
    """Signs for the wallet of the bank; at times it does not answer."""

    def __init__(self, chain: SimulatedChain) -> None:
        self._chain = chain

    async def address(self) -> str:
        """Return the address of the wallet."""
        return WALLET

    async def sign(self, transaction: UnsignedTransaction) -> str:
        """Return the signed transaction. Raises Unavailable."""
        if self._chain.random.random() < self._chain.faults.rate:
            self._chain.faults.happened["signer away"] += 1
            raise Unavailable("The signer does not answer.")
        fields: Any = {
            "type": 2,
            "chainId": transaction.chain_id,
            "nonce": transaction.nonce,
            "to": transaction.to,
            "value": transaction.value,
            "data": transaction.data,
            "gas": transaction.gas_limit,
            "maxFeePerGas": transaction.max_fee,
            "maxPriorityFeePerGas": transaction.priority_fee,
        }
        return "0x" + bytes(_ACCOUNT.sign_transaction(fields).raw_transaction).hex()

    async def close(self) -> None:
        """Nothing is open."""


class Node:
    """A node, in place of its JSON-RPC client."""

    def __init__(self, chain: SimulatedChain, url: str) -> None:
        self._chain, self._url = chain, url
        self.host = url.removeprefix("https://")
        self._methods: dict[str, Callable[..., Any]] = {
            "eth_chainId": lambda _: hex(CHAIN_ID),
            "eth_getBlockByNumber": lambda top, tag, full: self._block(self._number(top, tag), top, full=full),
            "eth_getLogs": self._logs,
            "eth_call": lambda top, call, tag: self._balance(call["data"], self._number(top, tag)),
            "eth_getTransactionCount": lambda top, _, tag: hex(chain.nonce(self._number(top, tag))),
            "eth_getBalance": lambda *_: ETHER,
            "eth_maxPriorityFeePerGas": lambda _: FEE,
            "eth_estimateGas": lambda *_: GAS,
            "eth_sendRawTransaction": lambda _, raw: chain.send(raw),
            "eth_getTransactionByHash": lambda _, hash_: self._known(hash_),
            "eth_getTransactionReceipt": self._receipt,
        }

    async def call(self, method: str, *params: Any) -> Any:
        """Answer. Raises NodeUnavailable, NodeRefused."""
        chain, trouble = self._chain, self._chain.trouble.get(self._url)
        await asyncio.sleep(chain.random.random() * 0.02)
        luck = chain.random.random()
        if trouble == "down" or luck < chain.faults.rate:
            raise NodeUnavailable(self.host, "ConnectError")
        answer = self._methods[method](max(chain.height - (LAG if trouble == "lags" else 0), 0), *params)
        if luck < 2 * chain.faults.rate:
            chain.faults.happened["node's answer lost"] += 1
            raise NodeUnavailable(self.host, "ReadTimeout")
        if isinstance(answer, list) and answer and trouble in {"lies", "doubles"}:
            return answer * 2 if trouble == "doubles" else answer[:-1]
        if method == "eth_getBlockByNumber" and answer and trouble == "lies":
            return answer | {"hash": answer["parentHash"], "parentHash": answer["hash"]}
        return None if method == "eth_getTransactionReceipt" and trouble == "lies" else answer

    async def aclose(self) -> None:
        """Nothing is open."""

    def _number(self, top: int, tag: str) -> int:
        return {"latest": top, "finalized": max(top - FINAL, 0)}.get(tag) or (int(tag, 16) if tag[:2] == "0x" else 0)

    def _block(self, number: int, top: int, *, full: bool) -> dict[str, Any] | None:
        if number > top:
            return None
        block = self._chain.blocks[number]
        shown = [
            {"hash": each.hash, "from": each.sender, "nonce": hex(each.nonce), "to": TEST_DOLLAR, "input": "0x"}
            for each in block.transfers
        ]
        about = {"number": hex(number), "hash": block.hash, "parentHash": block.parent, "baseFeePerGas": FEE}
        return about | {"transactions": shown if full else [each.hash for each in block.transfers]}

    def _logs(self, top: int, query: dict[str, Any]) -> list[dict[str, Any]]:
        first, last, wanted = int(query["fromBlock"], 16), int(query["toBlock"], 16), query["topics"]
        return [
            log
            for number, each in self._chain.transfers
            if first <= number <= min(last, top) and each.units
            for log in [self._log(number, each)]
            if all(
                topic is None or asked in (topic if isinstance(topic, list) else [topic])
                for topic, asked in zip(wanted, log["topics"], strict=False)
            )
        ]

    def _log(self, number: int, each: Transfer) -> dict[str, Any]:
        block = self._chain.blocks[number]
        return {
            "address": TEST_DOLLAR,
            "topics": [TRANSFER_TOPIC, topic_of(each.sender), topic_of(each.recipient)],
            "data": f"0x{each.units:064x}",
            "transactionHash": each.hash,
            "logIndex": hex(block.transfers.index(each)),
            "blockNumber": hex(number),
            "blockHash": block.hash,
        }

    def _balance(self, data: str, number: int) -> str:
        return f"0x{self._chain.blocks[number].balances['0x' + data[-40:]]:064x}"

    def _known(self, hash_: str) -> dict[str, str] | None:
        known = [*self._chain.pool, *(each for _, each in self._chain.transfers)]
        return {"hash": hash_} if any(each.hash == hash_ for each in known) else None

    def _receipt(self, top: int, hash_: str) -> dict[str, Any] | None:
        for number, each in self._chain.transfers:
            if each.hash == hash_ and number <= top:
                paid = {"gasUsed": GAS, "effectiveGasPrice": FEE, "status": "0x1"}
                log = self._log(number, each)
                return log | paid | {"logs": [log] if each.units else []}
        return None
