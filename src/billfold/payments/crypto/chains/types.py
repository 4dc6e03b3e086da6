"""A chain as the operator configures it, and what a node reports of it."""

from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec

NAME_PATTERN = r"^[A-Z][A-Z0-9_]{1,31}\Z"
CENTS_DECIMALS = 2
DECIMALS_MAX = 36
CONFIRMATIONS_MAX = 10_000


class ChainFamily(StrEnum):
    """What the nodes of a chain speak and how its addresses look. Another family is another `ChainNode`."""

    EVM = "EVM"


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token that is worth one dollar: its contract, and the smallest deposit in cents that is credited."""

    asset: Annotated[str, msgspec.Meta(pattern=r"^[A-Z0-9]{2,12}\Z")]
    address: str
    decimals: Annotated[int, msgspec.Meta(ge=CENTS_DECIMALS, le=DECIMALS_MAX)]
    minimum_cents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_00)] = 1_00


class Chain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One chain. A block is final once every node calls it `finalized`, or `confirmations` blocks lie above it."""

    name: Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
    chain_id: Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
    rpc_urls: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=5)]
    tokens: Annotated[tuple[Token, ...], msgspec.Meta(min_length=1, max_length=20)]
    xpub: str
    derivation_path: str = "0"
    family: ChainFamily = ChainFamily.EVM
    confirmations: Annotated[int, msgspec.Meta(ge=1, le=CONFIRMATIONS_MAX)] | None = None
    fee_cap_gwei: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 500
    """The most that a withdrawal pays per unit of gas; the wallet waits while the chain wants more."""
    replace_after_seconds: Annotated[int, msgspec.Meta(ge=10, le=86_400)] = 180
    """How long a transaction waits for its block before one that pays more takes its place."""

    @property
    def token(self) -> Token:
        """The token that portals of this chain ask for: the first."""
        return self.tokens[0]

    def find_token(self, address: str) -> Token | None:
        """Return the token with this contract, or None."""
        return next((each for each in self.tokens if each.address.lower() == address.lower()), None)


class Chains(dict[str, Chain]):
    """The chains of a bank by their names."""


"""The chains of a bank by name."""


class Block(NamedTuple):
    """A block's place. Hashes are lower case with 0x."""

    number: int
    hash: str
    parent_hash: str


class TokenTransfer(NamedTuple):
    """One log of a token. Its identity is (chain, tx_hash, log_index); addresses are EIP-55."""

    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str
    token: str
    sender: str
    recipient: str
    units: int
