"""Chains as the operator configures them: TOML with a `[[chain]]` per chain, read once when a process starts."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from coincurve import PublicKey
from eth_hash.auto import keccak

_EVM_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_LOWER_CASE_MAX = 7


def read_address(text: str) -> str | None:
    """Return an EVM address in the form of EIP-55, or None.

    An address of mixed case with a wrong checksum is invalid, because one character of it is wrong. One of a single
    case has no checksum and is accepted.
    """
    if _EVM_ADDRESS.fullmatch(text) is None:
        return None
    has_checksum = text[2:] not in {text[2:].lower(), text[2:].upper()}
    address = checksum_address(bytes.fromhex(text[2:]))
    return address if not has_checksum or address == text else None


def checksum_address(address: bytes) -> str:
    """Return 20 bytes as an EIP-55 address: the case of each letter is a bit of the hash of all of them."""
    digits = address.hex()
    return "0x" + "".join(
        digit.upper() if int(bit, 16) > _LOWER_CASE_MAX else digit
        for digit, bit in zip(digits, keccak(digits.encode()).hex(), strict=False)
    )


_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BYTES, _CHECK_BYTES = 78, 4
_MAIN_NET = bytes.fromhex("0488b21e")
_SCALAR_BYTES = 32


class ExtendedPublicKey(NamedTuple):
    """A public key with the chain code for deriving its children."""

    key: PublicKey
    chain_code: bytes

    @classmethod
    def read(cls, xpub: str) -> ExtendedPublicKey:
        """Parse an extended public key. Raises ValueError, and the library's error for an invalid point."""
        number = 0
        for char in xpub:
            number = number * len(_ALPHABET) + _ALPHABET.index(char)
        whole = number.to_bytes(_BYTES + _CHECK_BYTES)  # OverflowError: the text is too long
        content, check = whole[:_BYTES], whole[_BYTES:]
        if hashlib.sha256(hashlib.sha256(content).digest()).digest()[:_CHECK_BYTES] != check:
            raise ValueError("has a wrong checksum")
        if content[:4] != _MAIN_NET:
            raise ValueError("is of another network")
        return cls(PublicKey(content[45:]), content[13:45])

    def child(self, index: int) -> ExtendedPublicKey:
        """Return the child at a non-hardened index (CKDpub)."""
        digest = hmac.digest(self.chain_code, self.key.format() + index.to_bytes(4), "sha512")
        return ExtendedPublicKey(self.key.add(digest[:_SCALAR_BYTES]), digest[_SCALAR_BYTES:])


_PATH = re.compile(r"\d{1,9}(/\d{1,9}){0,4}")
INDEX_MAX = 2**31 - 1
"""The last index that BIP-32 can derive from a public key."""


class WatchOnlyAddresses:
    """EVM addresses derived from an xpub. Raises ValueError for a private key or any other text."""

    def __init__(self, xpub: str, path: str) -> None:
        if not xpub.startswith("xpub"):
            raise ValueError("is not an extended public key (xpub...)")
        if _PATH.fullmatch(path) is None:
            raise ValueError("has a path that a public key cannot derive")
        try:
            self._key = ExtendedPublicKey.read(xpub)
            self._path = [int(step) for step in path.split("/")]
            self.derive(0)
        except Exception as error:  # the library raises what its parsers raise
            raise ValueError("is not an extended public key (xpub...)") from error

    def derive(self, index: int) -> str:
        """Return the address at an index in EIP-55 form."""
        if not 0 <= index <= INDEX_MAX:
            raise ValueError(f"index {index}")
        extended = self._key
        for step in (*self._path, index):
            extended = extended.child(step)
        # The address is the end of the hash of the point, without the byte that marks it as uncompressed.
        return checksum_address(keccak(extended.key.format(compressed=False)[1:])[-20:])


NAME_PATTERN = r"^[A-Z][A-Z0-9_]{1,31}\Z"
CENTS_DECIMALS = 2


class ChainFamily(StrEnum):
    """The protocol of a chain's nodes and the form of its addresses; each family has its own class of nodes."""

    EVM = "EVM"


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token worth one dollar: its contract, and the smallest deposit in cents that is credited."""

    asset: Annotated[str, msgspec.Meta(pattern=r"^[A-Z0-9]{2,12}\Z")]
    address: str
    decimals: Annotated[int, msgspec.Meta(ge=CENTS_DECIMALS, le=36)]
    minimum_cents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_00)] = 1_00


class Chain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One chain. A block is final once every node reports it as `finalized`, or has `confirmations` blocks above it."""

    name: Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
    chain_id: Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
    rpc_urls: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=5)]
    tokens: Annotated[tuple[Token, ...], msgspec.Meta(min_length=1, max_length=20)]
    xpub: str
    derivation_path: str = "0"
    family: ChainFamily = ChainFamily.EVM
    confirmations: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    fee_cap_gwei: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 500
    """The maximum fee per unit of gas for a withdrawal; the wallet waits while the chain requires more."""
    replace_after_seconds: Annotated[int, msgspec.Meta(ge=10, le=86_400)] = 180
    """Time that a transaction waits for its block before one with a higher fee replaces it."""

    @property
    def token(self) -> Token:
        """The token that portals of this chain accept: the first."""
        return self.tokens[0]

    def find_token(self, address: str) -> Token | None:
        """Return the token with this contract, or None."""
        return next((each for each in self.tokens if each.address.lower() == address.lower()), None)


class Chains(dict[str, Chain]):
    """The chains of a bank by name."""


class Block(NamedTuple):
    """The number and hash of a block. Hashes are lower case with 0x."""

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
    """Whole cents, and the remaining units of less than a cent."""

    cents: int
    remainder: int


def cents_of(units: int, decimals: int) -> Cents:
    """Return the value of units of a dollar token, rounded down to the cent."""
    return Cents(*divmod(units, _units_per_cent(decimals)))


def units_of(cents: int, decimals: int) -> int:
    """Return the units of a dollar token with a value of these cents."""
    return cents * _units_per_cent(decimals)


def _units_per_cent(decimals: int) -> int:
    return int(10 ** (decimals - CENTS_DECIMALS))


LOCAL_CHAINS = Path("chain", "chains.toml")
"""The file of the local chain in the state directory of a sandbox."""


class ChainMistakes(Exception):
    """The chains are misconfigured. Each sentence names the chain and the field, never the address of a node."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    chain: tuple[Chain, ...] = ()


def read_chains(path: Path) -> Chains:
    """Return the chains in a file by name. Raises ChainMistakes."""
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=_File)
    except (OSError, ValueError) as error:  # an error of msgspec or TOML names the field, not its value
        raise ChainMistakes([f"{path}: {getattr(error, 'strerror', None) or error}"]) from None
    return checked_chains(found.chain)


def checked_chains(chains: Iterable[Chain]) -> Chains:
    """Return chains by name, with token addresses in EIP-55 form. Raises ChainMistakes."""
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
            yield f"rpc_urls {number} is not an address (https://host/..., or http:// in your own network)"
    if len(set(chain.rpc_urls)) < len(chain.rpc_urls):
        yield "rpc_urls has a node twice: two answers from one node are not agreement"
    for token in chain.tokens:
        if read_address(token.address) is None:
            yield f"the address of token {token.asset} is invalid, or its checksum (EIP-55) is wrong"
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
