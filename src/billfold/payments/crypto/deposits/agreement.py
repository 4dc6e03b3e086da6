"""What nodes agree about: a majority must report the same final block, and the same transfers up to it."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from billfold.payments.crypto.chains import Block, Chain, TokenTransfer
from billfold.payments.crypto.nodes import EvmNode, NodeUnavailable

Answer = TypeVar("Answer")
LAG_BLOCKS = 10
"""How far a node may be behind the newest block of the others before it is reported."""


class Agreement(NamedTuple):
    """The newest block that a majority calls final, and who does. `head` is the newest block of one of them."""

    final: Block
    nodes: tuple[EvmNode, ...]
    head: Block


class Nodes:
    """The nodes of one chain. `problems` says by node what is wrong with it in this round."""

    def __init__(self, chain: Chain, nodes: Sequence[EvmNode]) -> None:
        self.chain = chain
        self._nodes = tuple(nodes)
        self._is_checked: set[EvmNode] = set()
        self.quorum = len(self._nodes) // 2 + 1
        self.problems: dict[str, str] = {}

    async def agree(self) -> Agreement | None:
        """Return what a majority calls final, or None: then nothing is credited."""
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
        """Return the block of a number that a majority has, or None."""
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
        """Return the answers of nodes, without those that have none."""
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
                    self.problems.setdefault(node.host, "tells another chain than the other nodes")
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
