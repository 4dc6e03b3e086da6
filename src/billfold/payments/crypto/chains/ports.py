"""What the bank needs of a node of a chain, whatever its family."""

from collections.abc import Sequence
from typing import Protocol

from billfold.payments.crypto.chains.types import Block, TokenTransfer


class ChainNode(Protocol):
    """A node of one chain. Every call raises NodeUnavailable when there is no usable answer.

    Numbers of blocks rise from parent to child: heights of an EVM chain, slots of another.
    """

    host: str

    async def check_chain(self) -> None:
        """Raise NodeUnavailable if the node is of another chain."""

    async def head(self) -> Block:
        """Return the newest block."""

    async def finalized(self) -> Block:
        """Return the newest block that the chain itself calls final."""

    async def find_block(self, number: int) -> Block | None:
        """Return a block of the node's chain, or None if it has none of this number."""

    async def list_transfers(
        self, first: int, last: int, recipients: Sequence[str], tokens: Sequence[str] | None
    ) -> list[TokenTransfer]:
        """Return the transfers of tokens, or of any, to these addresses from others, in the order of the chain."""

    async def units_sent(self, token: str, address: str, block: int) -> int:
        """Return how many units of a token left an address for others in a block."""

    async def balance(self, token: str, address: str, block: int) -> int | None:
        """Return how many units of a token an address has after a block, None where the node does not know."""

    async def aclose(self) -> None:
        """Close the connections."""


class AddressSource(Protocol):
    """Where the addresses of portals come from. The same index is always the same address."""

    def derive(self, index: int) -> str:
        """Return the address of an index."""
