"""A data key, and values sealed with it.

A sealed value is version, key id, nonce, ciphertext and tag, as one of the vault's. `seal` never gives the same bytes
twice (AES-256-GCM, random nonce). `seal_stable` gives the same bytes for the same value at the same place
(AES-256-SIV, RFC 5297): for values that are compared, hashed or sent again. Both open only with their `aad`.
"""

import hmac
import secrets
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from billfold.platform.crypto import KEY_BYTES, associated_data, is_sealed_text, sealed_of_text, text_of_sealed
from billfold.platform.errors import InvariantError, Refused

_RANDOM, _STABLE = b"\x02", b"\x03"
_KEY_ID_BYTES = 4
_HEADER_BYTES = 1 + _KEY_ID_BYTES
_NONCE_BYTES = 12
_SIV_KEY_BYTES = 64
_TAG_BYTES = 16
SEALED_BYTES: Final = _HEADER_BYTES + _NONCE_BYTES + _TAG_BYTES
"""Number of bytes that sealing adds to a value."""


class DataShredded(Refused):
    """The customer's data key was destroyed: nothing that is sealed with it can be read, and nothing more is sealed."""

    def __init__(self, subject_id: UUID) -> None:
        detail = "The customer was closed, and its personal data was destroyed after the end of its retention."
        super().__init__("customer-not-open", detail, subject_id=str(subject_id))


class DataKey:
    """Seals and opens the values of one subject."""

    __slots__ = ("_digest_key", "_gcm", "_key_id", "_siv", "subject_id")

    def __init__(self, subject_id: UUID, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise InvariantError("A data key has the wrong length.", subject_id=str(subject_id))
        self.subject_id = subject_id
        self._key_id = _derive(key, b"key-id", _KEY_ID_BYTES)
        self._gcm = AESGCM(_derive(key, b"random", KEY_BYTES))
        self._siv = AESSIV(_derive(key, b"stable", _SIV_KEY_BYTES))
        self._digest_key = _derive(key, b"digest", KEY_BYTES)

    def seal(self, plain: bytes, aad: bytes) -> bytes:
        """Return the value sealed, bound to `aad` and the subject."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _RANDOM + self._key_id + nonce + self._gcm.encrypt(nonce, plain, self._bind(aad))

    def seal_stable(self, plain: bytes, aad: bytes) -> bytes:
        """Return the value sealed: the same bytes for the same value, `aad` and subject."""
        return _STABLE + self._key_id + self._siv.encrypt(plain, [self._bind(aad)])

    def open(self, sealed: bytes, aad: bytes) -> bytes:
        """Return what was sealed. Raises InvariantError when it was altered or moved, or is another subject's."""
        version, key_id, rest = sealed[:1], sealed[1:_HEADER_BYTES], sealed[_HEADER_BYTES:]
        if version not in {_RANDOM, _STABLE} or key_id != self._key_id:
            raise InvariantError("A sealed value is damaged, or not this customer's.", subject_id=str(self.subject_id))
        try:
            if version == _STABLE:
                return self._siv.decrypt(rest, [self._bind(aad)])
            return self._gcm.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], self._bind(aad))
        except (InvalidTag, ValueError):
            raise InvariantError(
                "A sealed value was altered, or moved from where it belongs.", subject_id=str(self.subject_id)
            ) from None

    def seal_text(self, plain: str, aad: bytes) -> str:
        """Return a text sealed with `seal_stable`, as a text."""
        return text_of_sealed(self.seal_stable(plain.encode(), aad))

    def open_text(self, sealed: str, aad: bytes) -> str:
        """Return the text that was sealed. Raises InvariantError."""
        return self.open(sealed_of_text(sealed), aad).decode()

    def has_sealed(self, text: str) -> bool:
        """Tell whether a text names this key as the one that it was sealed with."""
        return sealed_of_text(text).startswith(_STABLE + self._key_id)

    def digest(self, plain: bytes) -> bytes:
        """Return a 32-byte blind index of a value, which reveals nothing to anyone without the key."""
        return hmac.digest(self._digest_key, plain, "sha256")

    def _bind(self, aad: bytes) -> bytes:
        return self.subject_id.bytes + aad


class SealedValue(NamedTuple):
    """A sealed value to open: its owner, and the place it was sealed for."""

    subject_id: UUID
    sealed: bytes
    aad: bytes


class PlainValue(NamedTuple):
    """A value to seal: its owner, and the place it is bound to."""

    subject_id: UUID
    plain: bytes
    aad: bytes


class PartyField(StrEnum):
    """A personal text of the other party of a payment, sealed separately in each place: a column, a field in JSON.

    It is bound to its customer and its kind, not to a row: rules compare accounts by it, and copy it into payments.
    Incoming texts are always sealed, even if they look sealed, so that nothing a client sends is ever opened.
    """

    ACCOUNT = "account"
    ADDRESS = "address"
    TEXT = "text"

    def seal(self, data_key: DataKey, plain: str) -> str:
        """Return the text sealed; equal texts of a customer are equal."""
        return data_key.seal_text(plain, self.place(data_key.subject_id))

    def open(self, data_key: DataKey | None, stored: str) -> str | None:
        """Return the text; plain text of an earlier release unchanged. None if the key is destroyed."""
        if not is_sealed_text(stored):
            return stored
        return None if data_key is None else data_key.open_text(stored, self.place(data_key.subject_id))

    def place(self, customer_id: UUID) -> bytes:
        """Return the `aad` of a customer's fields of this kind."""
        return associated_data("party", self, "", tenant_id=customer_id)


def _derive(key: bytes, use: bytes, length: int) -> bytes:
    """Return the key for one use (HKDF, RFC 5869)."""
    return HKDF(SHA256(), length, salt=None, info=b"billfold.data-key." + use).derive(key)
