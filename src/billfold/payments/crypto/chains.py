"""Chains as the operator configures them: TOML with a `[[chain]]` per chain, read once when a process starts."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec

from billfold.payments.crypto.addresses import WatchOnlyAddresses, read_address

NAME_PATTERN = r"^[A-Z][A-Z0-9_]{1,31}\Z"
CENTS_DECIMALS = 2


class ChainFamily(StrEnum):
    """What the nodes of a chain speak and how its addresses look. Another family is another class of nodes."""

    EVM = "EVM"


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token that is worth one dollar: its contract, and the smallest deposit in cents that is credited."""

    asset: Annotated[str, msgspec.Meta(pattern=r"^[A-Z0-9]{2,12}\Z")]
    address: str
    decimals: Annotated[int, msgspec.Meta(ge=CENTS_DECIMALS, le=36)]
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
    confirmations: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
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


class Cents(NamedTuple):
    """Whole cents, and the units that are less than a cent."""

    cents: int
    remainder: int


def cents_of(units: int, decimals: int) -> Cents:
    """Return what units of a dollar token are worth, rounded down to the cent."""
    return Cents(*divmod(units, _units_per_cent(decimals)))


def units_of(cents: int, decimals: int) -> int:
    """Return the units of a dollar token that are worth these cents."""
    return cents * _units_per_cent(decimals)


def _units_per_cent(decimals: int) -> int:
    return int(10 ** (decimals - CENTS_DECIMALS))


LOCAL_CHAINS = Path("chain", "chains.toml")
"""Where the state directory of a sandbox has the file of its local chain."""


class ChainMistakes(Exception):
    """The chains are misconfigured. Each sentence names the chain and the field; no address of a node is repeated."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    chain: tuple[Chain, ...] = ()


def read_chains(path: Path) -> Chains:
    """Return the chains of a file by name. Raises ChainMistakes."""
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=_File)
    except (OSError, ValueError) as error:  # a mistake of msgspec or TOML names the field, not its value
        raise ChainMistakes([f"{path}: {getattr(error, 'strerror', None) or error}"]) from None
    return checked_chains(found.chain)


def checked_chains(chains: Iterable[Chain]) -> Chains:
    """Return chains by name, addresses of tokens in the form of EIP-55. Raises ChainMistakes."""
    chains = tuple(chains)
    mistakes = [f"{each.name}: {mistake}" for each in chains for mistake in _mistakes(each)]
    for field in ("name", "chain_id"):
        values = [getattr(each, field) for each in chains]
        mistakes += [f"{value}: {field} is there twice" for value in sorted({v for v in values if values.count(v) > 1})]
    if mistakes:
        raise ChainMistakes(mistakes)
    return Chains({each.name: _checksummed(each) for each in chains})


def _checksummed(chain: Chain) -> Chain:
    swap = msgspec.structs.replace
    return swap(chain, tokens=tuple(swap(each, address=read_address(each.address)) for each in chain.tokens))


def _mistakes(chain: Chain) -> Iterator[str]:
    for number, url in enumerate(chain.rpc_urls, 1):
        if not _is_node_url(url):
            yield f"rpc_urls {number} is no address (https://host/..., or http:// in a network of your own)"
    if len(set(chain.rpc_urls)) < len(chain.rpc_urls):
        yield "rpc_urls has a node twice: two answers of one node are no agreement"
    for token in chain.tokens:
        if read_address(token.address) is None:
            yield f"the address of token {token.asset} is none, or its checksum (EIP-55) is wrong"
    if len({token.address.lower() for token in chain.tokens}) < len(chain.tokens):
        yield "tokens has an address twice"
    try:
        WatchOnlyAddresses(chain.xpub, chain.derivation_path)
    except ValueError as error:
        yield f"xpub {error}"


def _is_node_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and url.isprintable() and " " not in url
