"""The code in data element 64 or 128 that authenticates a message, over all bytes before it."""

import hmac
from enum import StrEnum

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

from billfold.sandbox.card_processor.host.layouts import MAC_BYTES, Message, encode, mac_field, mac_length

_BLOCK = 8
_DES_KEYS = 16


class MacAlgorithm(StrEnum):
    """HMAC-SHA256 or AES-CMAC, cut to 8 bytes, or the retail MAC: ISO/IEC 9797-1 algorithm 3, padding method 1."""

    HMAC = "hmac-sha256"
    CMAC = "aes-cmac"
    RETAIL = "iso9797-1-alg3"

    def code(self, key: bytes, raw: bytes) -> bytes:
        """Return the 8 bytes that authenticate a text. The retail MAC uses the first 16 bytes of the key."""
        if self is MacAlgorithm.HMAC:
            return hmac.digest(key, raw, "sha256")[:MAC_BYTES]
        if self is MacAlgorithm.CMAC:
            cipher = CMAC(AES(key))
            cipher.update(raw)
            return cipher.finalize()[:MAC_BYTES]
        return _retail(key[:_DES_KEYS], raw)


def _retail(key: bytes, raw: bytes) -> bytes:
    first, second = TripleDES(key[:_BLOCK] * 3), TripleDES(key[_BLOCK:] * 3)
    chain = Cipher(first, modes.CBC(bytes(_BLOCK))).encryptor().update(raw + bytes(-len(raw) % _BLOCK))
    last = Cipher(second, modes.ECB()).decryptor().update(chain[-_BLOCK:])  # noqa: S305 - of a single block
    return Cipher(first, modes.ECB()).encryptor().update(last)  # noqa: S305


class MacKey:
    """The key that the processor shares with a network."""

    def __init__(self, algorithm: MacAlgorithm, key: bytes) -> None:
        self._algorithm, self._key = algorithm, key

    def is_right(self, message: Message, raw: bytes) -> bool:
        """Tell whether the MAC of a message is that of its bytes. It has one."""
        field = mac_field(message.fields)
        if field not in message.fields:  # in element 64 of a message that goes on
            return False
        code = self._algorithm.code(self._key, raw[: -mac_length(message.layout)])
        return hmac.compare_digest(code.hex().upper(), message.fields[field].upper())

    def sealed(self, message: Message) -> bytes:
        """Return a message with its MAC, written."""
        field = mac_field(message.fields)
        raw = encode(message._replace(fields={**message.fields, field: "0" * 2 * MAC_BYTES}))
        body = raw[: -mac_length(message.layout)]
        code = self._algorithm.code(self._key, body)
        return body + (code if message.layout.is_binary else code.hex().upper().encode())
