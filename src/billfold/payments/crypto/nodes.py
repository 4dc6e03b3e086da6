"""Nodes of EVM chains, over JSON-RPC 2.0, and the answers on which a majority of them agrees.

A node is not trusted: answers are bounded and checked.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from billfold.payments.crypto.chains import Block, Chain, TokenTransfer, read_address

ANSWER_SECONDS = 15.0
ANSWER_BYTES = 32 * 1024 * 1024


class NodeUnavailable(Exception):
    """A node gave no usable response. `reason` never contains its address or key."""

    def __init__(self, host: str, reason: str) -> None:
        self.host = host
        self.reason = reason
        super().__init__(f"{host}: {reason}")


class NodeRefused(Exception):
    """A node responded with a JSON-RPC error, whose message is the node's own."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{message} ({code})")


class _Error(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Answer(msgspec.Struct):
    id: int | str | None = None
    result: Any = None
    error: _Error | None = None


class JsonRpcClient:
    """One node. Calls are not retried here: the caller knows whether that is safe."""

    def __init__(self, url: str, *, timeout: float = ANSWER_SECONDS) -> None:
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._url = url
        self._last_id = 0
        import httpx  # noqa: PLC0415 - loads for a tenth of a second, and only a bank with chains needs it

        self._failure = httpx.HTTPError
        # To read the authorities of the web takes as long as ten calls, and plain http has none.
        self._client = httpx.AsyncClient(timeout=timeout, trust_env=False, verify=not url.startswith("http:"))

    async def call(self, method: str, *params: object) -> Any:  # noqa: ANN401 - depends on the method
        """Return the result. Raises NodeUnavailable, or NodeRefused with the node's error."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        body = await self._post(msgspec.json.encode(request))
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError:
            raise NodeUnavailable(self.host, f"{method}: the answer is not JSON-RPC") from None
        if answer.error is not None:
            raise NodeRefused(answer.error.code, answer.error.message[:200])
        if answer.id != request["id"]:
            raise NodeUnavailable(self.host, f"{method}: the answer is to another request")
        return answer.result

    async def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > ANSWER_BYTES:
                        raise NodeUnavailable(self.host, f"the answer has more than {ANSWER_BYTES} bytes")
        except self._failure as error:
            raise NodeUnavailable(self.host, type(error).__name__) from None
        # Some nodes send JSON-RPC errors with an HTTP error status.
        if response.status_code != HTTPStatus.OK and not content.startswith(b'{"'):
            raise NodeUnavailable(self.host, f"status {response.status_code}")
        return bytes(content)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""Keccak-256 of Transfer(address,address,uint256)."""
BALANCE_OF = "0x70a08231"
ADDRESSES_PER_QUERY = 500
_HASHES_ONLY = False
"""Parameter: hashes instead of full transactions of a block."""
_TRANSFER_TOPICS = 3
_WORD_BYTES = 32
_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


class EvmNode:
    """Reads from one node; `rpc` is public for a signer's transactions."""

    def __init__(self, chain: Chain, url: str) -> None:
        self.rpc = JsonRpcClient(url)
        self.host = self.rpc.host
        self._chain = chain

    async def check_chain(self) -> None:
        """Raise NodeUnavailable if the node is on another chain."""
        chain_id = self._quantity(await self._read("eth_chainId"))
        if chain_id != self._chain.chain_id:
            raise NodeUnavailable(self.host, f"is of chain {chain_id}, not {self._chain.chain_id}")

    async def head(self) -> Block:
        """Return the newest block."""
        return self._block(await self._read("eth_getBlockByNumber", "latest", _HASHES_ONLY))

    async def finalized(self) -> Block:
        """Return the newest block that the chain reports as final."""
        return self._block(await self._read("eth_getBlockByNumber", "finalized", _HASHES_ONLY))

    async def find_block(self, number: int) -> Block | None:
        """Return the block with a number, or None."""
        found = await self._read("eth_getBlockByNumber", hex(number), _HASHES_ONLY)
        if found is None:
            return None
        block = self._block(found)
        if block.number != number:
            raise NodeUnavailable(self.host, f"answers with block {block.number} for {number}")
        return block

    async def list_transfers(
        self, first: int, last: int, recipients: Sequence[str], tokens: Sequence[str] | None
    ) -> list[TokenTransfer]:
        """Return the transfers of these tokens, or of any, from others to these addresses, in chain order.

        Logs of another form with the same topic, such as those of ERC-721, are omitted.
        """
        found: list[TokenTransfer] = []
        for start in range(0, len(recipients), ADDRESSES_PER_QUERY):
            chunk = recipients[start : start + ADDRESSES_PER_QUERY]
            log_filter: dict[str, Any] = {} if tokens is None else {"address": list(tokens)}
            log_filter["topics"] = [TRANSFER_TOPIC, None, [topic_of(each) for each in chunk]]
            expected = {each.lower() for each in chunk}
            for transfer in await self._logged(first, last, log_filter):
                is_asked = first <= transfer.block_number <= last and transfer.recipient.lower() in expected
                if not is_asked or (tokens is not None and transfer.token not in tokens):
                    raise NodeUnavailable(self.host, "eth_getLogs: a log that was not requested")
                found.append(transfer)
        return sorted(found, key=lambda each: (each.block_number, each.log_index))

    async def units_sent(self, token: str, address: str, block: int) -> int:
        """Return how many units of a token an address sent to others in a block."""
        log_filter = {"address": token, "topics": [TRANSFER_TOPIC, topic_of(address)]}
        sent = await self._logged(block, block, log_filter)
        if any((each.token, each.sender, each.block_number) != (token, address, block) for each in sent):
            raise NodeUnavailable(self.host, "eth_getLogs: a log that was not requested")
        return sum(each.units for each in sent)

    async def balance(self, token: str, address: str, block: int) -> int | None:
        """Return the balance of an address in units of a token after a block.

        None if the node refuses: it does not keep the state of such old blocks, or the token fails.
        """
        call = {"to": token, "data": BALANCE_OF + topic_of(address)[2:]}
        try:
            answer = await self.rpc.call("eth_call", call, hex(block))
        except NodeRefused:
            return None
        if not isinstance(answer, str) or _HASH.fullmatch(answer) is None:
            raise NodeUnavailable(self.host, "eth_call: no amount")
        return int(answer, 16)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.rpc.aclose()

    async def _read(self, method: str, *params: object) -> Any:  # noqa: ANN401 - depends on the method
        """Call a read-only method; a refusal counts as no usable answer."""
        try:
            return await self.rpc.call(method, *params)
        except NodeRefused as error:
            raise NodeUnavailable(self.host, f"{method}: {error}") from None

    async def _logged(self, first: int, last: int, log_filter: dict[str, Any]) -> list[TokenTransfer]:
        """Return the transfers in logs; a transfer from an address to itself moves nothing and is omitted."""
        logs = await self._read("eth_getLogs", log_filter | {"fromBlock": hex(first), "toBlock": hex(last)})
        if not isinstance(logs, list):
            raise NodeUnavailable(self.host, "eth_getLogs: no list")
        transfers = (self._transfer(log) for log in logs)
        return [each for each in transfers if each is not None and each.sender != each.recipient]

    def _block(self, found: object) -> Block:
        if not isinstance(found, dict):
            raise NodeUnavailable(self.host, "has no such block")
        number, *hashes = (found.get(name) for name in ("number", "hash", "parentHash"))
        return Block(self._quantity(number), *map(self._hash, hashes))

    def _transfer(self, log: object) -> TokenTransfer | None:
        if not isinstance(log, dict) or log.get("removed"):
            return None
        topics, data = log.get("topics") or [], log.get("data") or "0x"
        if len(topics) != _TRANSFER_TOPICS or topics[0].lower() != TRANSFER_TOPIC:
            return None
        if len(data) != 2 + 2 * _WORD_BYTES:
            return None
        return TokenTransfer(
            tx_hash=self._hash(log.get("transactionHash")),
            log_index=self._quantity(log.get("logIndex")),
            block_number=self._quantity(log.get("blockNumber")),
            block_hash=self._hash(log.get("blockHash")),
            token=self._address(log.get("address")),
            sender=self._address_of_topic(topics[1]),
            recipient=self._address_of_topic(topics[2]),
            units=self._quantity(data),
        )

    def _quantity(self, value: object) -> int:
        if not isinstance(value, str) or _QUANTITY.fullmatch(value) is None:
            raise NodeUnavailable(self.host, "returned an invalid number")
        return int(value, 16)

    def _hash(self, value: object) -> str:
        if not isinstance(value, str) or _HASH.fullmatch(value) is None:
            raise NodeUnavailable(self.host, "returned an invalid hash")
        return value.lower()

    def _address(self, value: object) -> str:
        found = read_address(str(value).lower())
        if found is None:
            raise NodeUnavailable(self.host, "returned an invalid address")
        return found

    def _address_of_topic(self, value: object) -> str:
        return self._address("0x" + self._hash(value)[-40:])


def topic_of(address: str) -> str:
    """Return an address in the form of topics and call arguments: 32 bytes, in lower case."""
    return "0x" + address[2:].lower().rjust(2 * _WORD_BYTES, "0")


Answer = TypeVar("Answer")
LAG_BLOCKS = 10
"""Maximum number of blocks that a node may lag behind the others before it is reported."""


class Agreement(NamedTuple):
    """The newest block that a majority reports as final, and those nodes. `head` is the newest block of one of them."""

    final: Block
    nodes: tuple[EvmNode, ...]
    head: Block


class Nodes:
    """The nodes of one chain. `problems` has the problem of each node in this round."""

    def __init__(self, chain: Chain, nodes: Sequence[EvmNode]) -> None:
        self.chain = chain
        self._nodes = tuple(nodes)
        self._is_checked: set[EvmNode] = set()
        self.quorum = len(self._nodes) // 2 + 1
        self.problems: dict[str, str] = {}

    async def agree(self) -> Agreement | None:
        """Return the agreement of a majority, or None: then nothing is credited."""
        self.problems = {}
        tips = await self.ask(self._nodes, self._tip)
        self._report_lag({node: head for node, (head, _) in tips.items()})
        for number in sorted({final.number for _, final in tips.values()}, reverse=True):
            able = [node for node, (_, final) in tips.items() if final.number >= number]
            if len(able) < self.quorum:
                continue
            group, block = self._majority(await self.ask(able, lambda node: _block(node, number)))  # noqa: B023 - at once
            if block is not None:
                return Agreement(block, group, head=tips[group[0]][0])
        if len(tips) < self.quorum:
            self._note_all(f"{len(tips)} of {len(self._nodes)} nodes answer, {self.quorum} must agree")
        return None

    async def agree_on_block(self, nodes: Sequence[EvmNode], number: int) -> Block | None:
        """Return the block with this number that a majority has, or None."""
        return self._majority(await self.ask(nodes, lambda node: _block(node, number)))[1]

    async def agree_on_transfers(
        self, nodes: Sequence[EvmNode], first: int, last: int, recipients: Sequence[str]
    ) -> tuple[TokenTransfer, ...] | None:
        """Return the transfers of the bank's tokens that a majority reports, or None."""
        tokens = [token.address for token in self.chain.tokens]

        async def read(node: EvmNode) -> tuple[TokenTransfer, ...]:
            return tuple(await node.list_transfers(first, last, recipients, tokens))

        return self._majority(await self.ask(nodes, read))[1]

    async def ask(
        self, nodes: Sequence[EvmNode], question: Callable[[EvmNode], Awaitable[Answer]]
    ) -> dict[EvmNode, Answer]:
        """Return the answers of nodes, leaving out those without one."""
        answers = await asyncio.gather(*(question(node) for node in nodes), return_exceptions=True)
        found: dict[EvmNode, Answer] = {}
        for node, answer in zip(nodes, answers, strict=True):
            if isinstance(answer, NodeUnavailable):
                self.problems[node.host] = answer.reason
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found[node] = answer
        return found

    async def _tip(self, node: EvmNode) -> tuple[Block, Block]:
        if node not in self._is_checked:
            await node.check_chain()
            self._is_checked.add(node)
        head = await node.head()
        if self.chain.confirmations is None:
            return head, await node.finalized()
        return head, await _block(node, max(head.number - self.chain.confirmations, 0))

    def _majority(self, answers: dict[EvmNode, Answer]) -> tuple[tuple[EvmNode, ...], Answer | None]:
        groups: dict[Answer, list[EvmNode]] = defaultdict(list)
        for node, answer in answers.items():
            groups[answer].append(node)
        agreed = next((answer for answer, nodes in groups.items() if len(nodes) >= self.quorum), None)
        for answer, nodes in groups.items():
            if len(groups) > 1 and answer != agreed:
                for node in nodes:
                    self.problems.setdefault(node.host, "reports another chain than the other nodes")
        return tuple(groups[agreed]) if agreed is not None else (), agreed

    def _report_lag(self, heads: dict[EvmNode, Block]) -> None:
        newest = max((head.number for head in heads.values()), default=0)
        for node, head in heads.items():
            if newest - head.number > LAG_BLOCKS:
                self.problems[node.host] = f"is {newest - head.number} blocks behind"

    def _note_all(self, problem: str) -> None:
        for node in self._nodes:
            self.problems.setdefault(node.host, problem)


async def _block(node: EvmNode, number: int) -> Block:
    found = await node.find_block(number)
    if found is None:
        raise NodeUnavailable(node.host, f"has no block {number}")
    return found
