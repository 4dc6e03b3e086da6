"""Addresses of EVM chains, and those of deposits: derived from an extended public key (BIP-32).

The keys that spend are elsewhere: nothing here can derive a private key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from coincurve import PublicKey
from eth_hash.auto import keccak

_EVM_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_LOWER_CASE_MAX = 7


def read_address(text: str) -> str | None:
    """Return an EVM address in the form of EIP-55, or None.

    An address of mixed case whose case does not fit is none: one character of it is wrong. One of a single case has
    no checksum and is taken.
    """
    if _EVM_ADDRESS.fullmatch(text) is None:
        return None
    has_checksum = text[2:] not in {text[2:].lower(), text[2:].upper()}
    address = checksum_address(bytes.fromhex(text[2:]))
    return address if not has_checksum or address == text else None


def checksum_address(address: bytes) -> str:
    """Return 20 bytes in the form of EIP-55: the case of each letter is a bit of the hash of all of them."""
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
    """A public key with the chain code that its children are derived with."""

    key: PublicKey
    chain_code: bytes

    @classmethod
    def read(cls, xpub: str) -> ExtendedPublicKey:
        """Return the key of its text. Raises ValueError, and what the library says of a point that is none."""
        number = 0
        for char in xpub:
            number = number * len(_ALPHABET) + _ALPHABET.index(char)
        whole = number.to_bytes(_BYTES + _CHECK_BYTES)  # an OverflowError is a text that is too long
        content, check = whole[:_BYTES], whole[_BYTES:]
        if hashlib.sha256(hashlib.sha256(content).digest()).digest()[:_CHECK_BYTES] != check:
            raise ValueError("has a wrong checksum")
        if content[:4] != _MAIN_NET:
            raise ValueError("is of another network")
        return cls(PublicKey(content[45:]), content[13:45])

    def child(self, index: int) -> ExtendedPublicKey:
        """Return the child of an index that is not hardened (CKDpub)."""
        digest = hmac.digest(self.chain_code, self.key.format() + index.to_bytes(4), "sha512")
        return ExtendedPublicKey(self.key.add(digest[:_SCALAR_BYTES]), digest[_SCALAR_BYTES:])


_PATH = re.compile(r"\d{1,9}(/\d{1,9}){0,4}")
INDEX_MAX = 2**31 - 1
"""The last index of BIP-32 that a public key can derive."""


class WatchOnlyAddresses:
    """EVM addresses below an xpub. Raises ValueError if it is none, or a private key."""

    def __init__(self, xpub: str, path: str) -> None:
        if not xpub.startswith("xpub"):
            raise ValueError("is no extended public key (xpub...)")
        if _PATH.fullmatch(path) is None:
            raise ValueError("has a path that a public key cannot derive")
        try:
            self._key = ExtendedPublicKey.read(xpub)
            self._path = [int(step) for step in path.split("/")]
            self.derive(0)
        except Exception as error:  # the library raises what its parsers raise
            raise ValueError("is no extended public key (xpub...)") from error

    def derive(self, index: int) -> str:
        """Return the address of an index in the form of EIP-55."""
        if not 0 <= index <= INDEX_MAX:
            raise ValueError(f"index {index}")
        extended = self._key
        for step in (*self._path, index):
            extended = extended.child(step)
        # The address is the end of the hash of the point, without the byte that says it is uncompressed.
        return checksum_address(keccak(extended.key.format(compressed=False)[1:])[-20:])
