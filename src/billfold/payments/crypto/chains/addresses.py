"""Deposit addresses, derived from an extended public key (BIP-32): the keys that spend are elsewhere."""

import re

from eth_hash.auto import keccak

from billfold.payments.crypto.chains.extended_keys import ExtendedPublicKey
from billfold.payments.crypto.chains.rules import checksum_address

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
