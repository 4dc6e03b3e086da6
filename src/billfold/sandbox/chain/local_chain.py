"""A chain of blocks in memory, saved in a file from which it is rebuilt.

Transactions wait in a pool and enter a block when one is mined. A reorganization reverts blocks, and the blocks mined
afterwards have other hashes.
"""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from eth_tester.backends.pyevm.main import PyEVMBackend, get_default_genesis_params
from eth_tester.exceptions import BlockNotFound, TransactionFailed
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError


def hex_of(value: bytes) -> str:
    """Return bytes in JSON-RPC format."""
    return "0x" + value.hex()


def render_block(block: Any) -> dict[str, Any]:  # noqa: ANN401 - py-evm has no types for its blocks
    """Return a block with the hashes of its transactions."""
    header = block.header
    return {
        "number": hex(header.block_number),
        "hash": hex_of(header.hash),
        "parentHash": hex_of(header.parent_hash),
        "stateRoot": hex_of(header.state_root),
        "timestamp": hex(header.timestamp),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "baseFeePerGas": hex(header.base_fee_per_gas),
        "transactions": [hex_of(each.hash) for each in block.transactions],
    }


def render_transaction(transaction: Any, block: Any = None, place: int | None = None) -> dict[str, Any]:  # noqa: ANN401
    """Return a transaction; without a block it is pending."""
    fee = getattr(transaction, "max_fee_per_gas", None)
    shown = {
        "hash": hex_of(transaction.hash),
        "from": to_checksum_address(transaction.sender),
        "to": to_checksum_address(transaction.to) if transaction.to else None,
        "nonce": hex(transaction.nonce),
        "value": hex(transaction.value),
        "gas": hex(transaction.gas),
        "input": hex_of(transaction.data),
        "type": hex(getattr(transaction, "type_id", 0) or 0),
        "blockHash": None if block is None else hex_of(block.hash),
        "blockNumber": None if block is None else hex(block.number),
        "transactionIndex": None if place is None else hex(place),
    }
    if fee is None:
        return shown | {"gasPrice": hex(transaction.gas_price)}
    return shown | {"maxFeePerGas": hex(fee), "maxPriorityFeePerGas": hex(transaction.max_priority_fee_per_gas)}


def render_receipt(receipt: dict[str, Any], first_log: int) -> dict[str, Any]:
    """Return a receipt of the backend; `first_log` counts the logs before it in the block."""
    place = {
        "blockHash": hex_of(receipt["block_hash"]),
        "blockNumber": hex(receipt["block_number"]),
        "transactionHash": hex_of(receipt["transaction_hash"]),
        "transactionIndex": hex(receipt["transaction_index"]),
    }
    created = receipt["contract_address"]
    return place | {
        "from": to_checksum_address(receipt["from"]),
        "to": to_checksum_address(receipt["to"]) if receipt["to"] else None,
        "contractAddress": to_checksum_address(created) if created else None,
        "status": hex(receipt["status"]),
        "gasUsed": hex(receipt["gas_used"]),
        "cumulativeGasUsed": hex(receipt["cumulative_gas_used"]),
        "effectiveGasPrice": hex(receipt["effective_gas_price"]),
        "type": hex(int(receipt["type"])),
        "logs": [
            place
            | {
                "address": to_checksum_address(log["address"]),
                "topics": [hex_of(topic) for topic in log["topics"]],
                "data": hex_of(log["data"]),
                "logIndex": hex(first_log + number),
                "removed": False,
            }
            for number, log in enumerate(receipt["logs"])
        ],
    }


FINALITY_BLOCKS = 2
"""Number of blocks above one that this chain calls final."""
FAUCET_WEI = 10**24
GENESIS_SECONDS = 1_700_000_000
_BUMP_PERCENT = 110


class ChainRefusal(Exception):
    """A call that the chain refuses, like a real node."""


class _Pooled(NamedTuple):
    raw: bytes
    transaction: Any

    @property
    def fee(self) -> int:
        return int(getattr(self.transaction, "max_fee_per_gas", 0) or self.transaction.gas_price)

    @property
    def tip(self) -> int:
        return int(getattr(self.transaction, "max_priority_fee_per_gas", self.fee))


class _Step(msgspec.Struct, omit_defaults=True):
    """A step of the chain: a block with these transactions, or a revert down to a number."""

    at: int = 0
    transactions: tuple[str, ...] = ()
    revert_to: int | None = None


class LocalChain:
    """A chain whose only funded account is `faucet`. With `journal` it outlives its process."""

    def __init__(self, chain_id: int, faucet: bytes, journal: Path | None = None) -> None:
        genesis = get_default_genesis_params(overrides={"timestamp": GENESIS_SECONDS, "gas_limit": 30_000_000})
        rich = {faucet: {"balance": FAUCET_WEI, "nonce": 0, "code": b"", "storage": {}}}
        self.backend = PyEVMBackend(genesis_parameters=genesis, genesis_state=rich)
        type(self.backend.chain).chain_id = chain_id
        self.is_automining = True
        self.minimum_tip = 0
        self.blocks = [render_block(self._at(0))]
        self.receipts: dict[str, dict[str, Any]] = {}
        self.transactions: dict[str, dict[str, Any]] = {}
        self._pool: dict[tuple[bytes, int], _Pooled] = {}
        self._steps = 0
        self._journal: Path | None = None
        for line in journal.read_bytes().splitlines() if journal and journal.exists() else ():
            self._repeat(msgspec.json.decode(line, type=_Step))
        self._journal = journal

    @property
    def chain_id(self) -> int:
        """The chain id for which transactions are signed."""
        return int(self.backend.chain.chain_id)

    @property
    def height(self) -> int:
        """The number of the newest block."""
        return len(self.blocks) - 1

    def send(self, raw: bytes, at: int) -> str:
        """Add a signed transaction to the pool. Raises ChainRefusal."""
        try:
            transaction = self.backend.chain.get_transaction_builder().decode(raw)
            sender, signed_for = transaction.sender, getattr(transaction, "chain_id", self.chain_id)
        except Exception as error:  # noqa: BLE001 - whatever the parser meets in foreign bytes
            raise ChainRefusal(f"invalid transaction: {type(error).__name__}") from None
        if signed_for != self.chain_id:
            raise ChainRefusal("invalid chain id for signer")
        pooled, place = _Pooled(raw, transaction), (sender, transaction.nonce)
        hash_ = _hex(transaction.hash)
        if hash_ in self.receipts or (place in self._pool and self._pool[place].raw == raw):
            raise ChainRefusal("already known")
        self._check(pooled, sender, self._pool.get(place))
        self._pool[place] = pooled
        self.transactions[hash_] = render_transaction(transaction)
        if self.is_automining:
            self.mine(at)
        return hash_

    def _check(self, pooled: _Pooled, sender: bytes, earlier: _Pooled | None) -> None:
        if pooled.transaction.nonce < self.backend.get_nonce(sender):
            raise ChainRefusal("nonce too low")
        cost = pooled.transaction.value + pooled.transaction.gas * pooled.fee
        if cost > self.backend.get_balance(sender):
            raise ChainRefusal("insufficient funds for gas * price + value")
        if earlier and (
            pooled.fee * 100 < earlier.fee * _BUMP_PERCENT or pooled.tip * 100 < earlier.tip * _BUMP_PERCENT
        ):
            raise ChainRefusal("replacement transaction underpriced")

    def mine(self, at: int) -> None:
        """Mine a block from the pool, highest fee first and per sender in the order of nonces."""
        taken, progress = [], True
        while progress:
            progress = False
            for place, pooled in sorted(self._pool.items(), key=lambda each: (-each[1].tip, each[0][1])):
                if self._apply(place, pooled):
                    taken.append(pooled)
                    progress = True
        self._close_block(at, taken)

    def mine_empty(self, at: int) -> None:
        """Mine an empty block, regardless of the pool."""
        self._close_block(at, [])

    def _apply(self, place: tuple[bytes, int], pooled: _Pooled) -> bool:
        """Add a transaction to the current block; one that can never enter leaves the pool."""
        sender, nonce = place
        chain = self.backend.chain
        expected = chain.get_vm().state.get_nonce(sender)
        base_fee = chain.get_block().header.base_fee_per_gas
        if nonce < expected:
            self._forget(place)
        if nonce != expected or pooled.fee < base_fee or min(pooled.tip, pooled.fee - base_fee) < self.minimum_tip:
            return False
        try:
            chain.apply_transaction(pooled.transaction)
        except ValidationError:  # the sender can no longer afford it, or the block is full
            self._forget(place)
            return False
        del self._pool[place]
        return True

    def _forget(self, place: tuple[bytes, int]) -> None:
        gone = self._pool.pop(place)
        self.transactions.pop(_hex(gone.transaction.hash), None)

    def _close_block(self, at: int, taken: list[_Pooled]) -> None:
        self._steps += 1
        later_than_parent = max(at, int(self.blocks[-1]["timestamp"], 16) + 1)
        self.backend.chain.mine_block(
            timestamp=later_than_parent, mix_hash=keccak(self._steps.to_bytes(8, "big")), coinbase=bytes(20)
        )
        block = self._at(len(self.blocks))
        self.blocks.append(render_block(block))
        first_log = 0
        for place, pooled in enumerate(taken):
            hash_ = pooled.transaction.hash
            receipt = render_receipt(self.backend.get_transaction_receipt(hash_), first_log)
            first_log += len(receipt["logs"])
            self.receipts[_hex(hash_)] = receipt
            self.transactions[_hex(hash_)] = render_transaction(pooled.transaction, block, place)
        self._record(_Step(at=later_than_parent, transactions=tuple(pooled.raw.hex() for pooled in taken)))

    def reorganize(self, depth: int, *, keep: bool) -> None:
        """Revert the newest blocks; `keep` returns their transactions to the pool."""
        if not 0 < depth <= self.height:
            raise ChainRefusal(f"the chain has {self.height} blocks")
        orphaned = [hash_ for block in self.blocks[-depth:] for hash_ in block["transactions"]]
        raws = [self.backend.chain.get_canonical_transaction(bytes.fromhex(each[2:])) for each in orphaned]
        self._revert(self.height - depth)
        for hash_, transaction in zip(orphaned, raws, strict=True):
            self.receipts.pop(hash_, None)
            self.transactions.pop(hash_, None)
            if keep:
                place = (transaction.sender, transaction.nonce)
                self._pool[place] = _Pooled(transaction.encode(), transaction)
                self.transactions[hash_] = render_transaction(transaction)

    def _revert(self, number: int) -> None:
        self._steps += 1
        del self.blocks[number + 1 :]
        self.backend.revert_to_snapshot(bytes.fromhex(self.blocks[-1]["hash"][2:]))
        self._record(_Step(revert_to=number))

    def nonce(self, address: bytes, block: int | None) -> int:
        """Return the next nonce of an account after a block; None includes the pool."""
        if block is not None:
            return int(self.backend.get_nonce(address, block))
        nonce = int(self.backend.get_nonce(address))
        while (address, nonce) in self._pool:
            nonce += 1
        return nonce

    def call(self, call: dict[str, Any], block: int) -> bytes:
        """Execute a call on the state after a block. Raises ChainRefusal if it reverts."""
        try:
            return bytes(self.backend.call(call, block))
        except (TransactionFailed, ValidationError) as error:
            raise ChainRefusal(f"execution reverted: {error}") from None
        except BlockNotFound:
            raise ChainRefusal("header not found") from None

    def _at(self, number: int) -> Any:  # noqa: ANN401 - py-evm has no types for its blocks
        chain = self.backend.chain
        return chain.get_block_by_header(chain.get_canonical_block_header_by_number(number))

    def _repeat(self, step: _Step) -> None:
        if step.revert_to is not None:
            for block in self.blocks[step.revert_to + 1 :]:
                for hash_ in block["transactions"]:
                    self.receipts.pop(hash_, None)
                    self.transactions.pop(hash_, None)
            self._revert(step.revert_to)
            return
        builder = self.backend.chain.get_transaction_builder()
        taken = [_Pooled(bytes.fromhex(raw), builder.decode(bytes.fromhex(raw))) for raw in step.transactions]
        for pooled in taken:
            self.backend.chain.apply_transaction(pooled.transaction)
        self._close_block(step.at, taken)

    def _record(self, step: _Step) -> None:
        if self._journal is not None:
            with self._journal.open("ab") as file:
                file.write(msgspec.json.encode(step) + b"\n")


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
