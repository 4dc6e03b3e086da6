"""Extended public keys (BIP-32): read, and the public keys below one. Nothing here can derive a private key."""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from coincurve import PublicKey

_ALPHABET = {char: value for value, char in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")}
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
            if char not in _ALPHABET:
                raise ValueError("holds a character that Base58 has not")
            number = number * len(_ALPHABET) + _ALPHABET[char]
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
