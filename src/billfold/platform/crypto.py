"""Encryption, hashes and signatures; the algorithms themselves are libraries'.

Sealed values are AES-256-GCM, bound to the place they belong to. Tokens are stored as hashes,
passwords as argon2id. Requests are signed with HMAC-SHA256, documents with Ed25519.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence

import argon2
import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from billfold.platform.errors import InvariantError

KEY_BYTES = 32
_pack = msgspec.msgpack.Encoder().encode
_VERSION = b"\x01"
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12
_TAG_BYTES = 16
_TOKEN_BYTES = 32
_HEADER_BYTES = len(_VERSION) + _KEY_ID_BYTES
_SEALED_BYTES_MIN = _HEADER_BYTES + _NONCE_BYTES + _TAG_BYTES
_CANONICAL_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9/_.-]*")
_SEALED_TEXT_PREFIX = "sealed:"
_SEALED_TEXT = re.compile(rf"{_SEALED_TEXT_PREFIX}[A-Za-z0-9_-]{{28,}}")  # version, key id and tag are 21 bytes

# The minimum that OWASP recommends for argon2id: 19 MiB, two passes, one lane.
_PASSES, _MEMORY_KIB, _LANES = 2, 19_456, 1
_PASSWORD_HASHER = argon2.PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=_LANES)
_NO_SALT, _NO_HASH = (base64.b64encode(secrets.token_bytes(length)).decode().rstrip("=") for length in (16, 32))
# Of no password, with the cost of any: drawn, since a process would take 19 MiB and 0.1 s to compute one at its start.
_DUMMY_HASH = f"$argon2id$v=19$m={_MEMORY_KIB},t={_PASSES},p={_LANES}${_NO_SALT}${_NO_HASH}"


class Vault:
    """Seals small values under a key of 32 bytes, and opens those sealed under retired keys.

    A sealed value is version, key id, nonce, ciphertext and tag. It opens only with the `aad` it
    was sealed with (see `place`), so it cannot be moved to another row, column or tenant.
    """

    def __init__(self, key: bytes, *, retired: Sequence[bytes] = ()) -> None:
        for secret_key in (key, *retired):
            if len(secret_key) != KEY_BYTES:
                raise ValueError(f"a key of the vault has {KEY_BYTES} bytes, not {len(secret_key)}")
        self._current = _key_id(key)
        self._ciphers = {_key_id(secret_key): AESGCM(secret_key) for secret_key in (*retired, key)}
        self._mac_keys = {_key_id(secret_key): _derive_key(secret_key, b"vouch") for secret_key in (*retired, key)}
        self._signers = {
            _key_id(secret_key): Ed25519PrivateKey.from_private_bytes(_derive_key(secret_key, b"sign"))
            for secret_key in (*retired, key)
        }
        self._index_keys = {_key_id(secret_key): _derive_key(secret_key, b"index") for secret_key in (key, *retired)}

    def seal(self, plain: bytes, aad: bytes) -> bytes:
        """Return the value sealed under the current key, bound to `aad`."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        ciphertext = self._ciphers[self._current].encrypt(nonce, plain, aad)
        return _VERSION + self._current + nonce + ciphertext

    def open(self, sealed: bytes, aad: bytes) -> bytes:
        """Return the unsealed value. Raises Broken if it was altered, moved, or its key is gone."""
        head, rest = sealed[:_HEADER_BYTES], sealed[_HEADER_BYTES:]
        cipher = self._ciphers.get(head[len(_VERSION) :])
        if len(sealed) < _SEALED_BYTES_MIN or not head.startswith(_VERSION) or cipher is None:
            raise InvariantError("A sealed value is damaged, or its key is not among the bank's keys.")
        try:
            return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], aad)
        except InvalidTag:
            raise InvariantError("A sealed value was altered, or moved from where it belongs.") from None

    def seal_text(self, plain: str, aad: bytes) -> str:
        """Return a text sealed like `seal`, as a text."""
        return text_of_sealed(self.seal(plain.encode(), aad))

    def open_text(self, sealed: str, aad: bytes) -> str:
        """Return the text that was sealed. Raises InvariantError."""
        return self.open(sealed_of_text(sealed), aad).decode()

    @property
    def key_id(self) -> str:
        """The id of the current key in hex; it reveals nothing about the key."""
        return self._current.hex()

    def has_key_of(self, sealed: bytes) -> bool:
        """Tell whether a value was sealed under the current key or a retired one."""
        return sealed[len(_VERSION) : _HEADER_BYTES] in self._ciphers

    def is_current(self, sealed: bytes) -> bool:
        """Tell whether a value is sealed under the current key rather than a retired one."""
        return sealed[:_HEADER_BYTES] == _VERSION + self._current

    def blind_index(self, text: str, purpose: str) -> bytes:
        """Return the id of the current key (4 bytes) and 32 bytes by which a sealed text can be found.

        They differ for each purpose. After a change of key, indexes must be computed again.
        """
        return self._blind_index(self._current, text, purpose)

    def blind_indexes(self, text: str, purpose: str) -> list[bytes]:
        """Return the blind indexes of a text under every key of the bank, that of the current one first."""
        return [self._blind_index(key_id, text, purpose) for key_id in self._index_keys]

    def _blind_index(self, key_id: bytes, text: str, purpose: str) -> bytes:
        return key_id + hmac.digest(self._index_keys[key_id], _length_prefixed((purpose, text)), "sha256")

    def compute_mac(self, message: bytes, purpose: str) -> bytes:
        """Return the id of the current key (4 bytes) and the HMAC-SHA256 of a message under it."""
        return self._current + hmac.digest(
            self._mac_keys[self._current], _length_prefixed((purpose,)) + message, "sha256"
        )

    def verify_mac(self, mac: bytes, message: bytes, purpose: str) -> bool:
        """Tell whether `vouch` returned this for the message, now or under a retired key."""
        key_id, digest = mac[:_KEY_ID_BYTES], mac[_KEY_ID_BYTES:]
        key = self._mac_keys.get(key_id)
        if key is None:
            return False
        return hmac.compare_digest(digest, hmac.digest(key, _length_prefixed((purpose,)) + message, "sha256"))

    def sign(self, message: bytes) -> bytes:
        """Return the id of the current key (4 bytes) and an Ed25519 signature made with it."""
        return self._current + self._signers[self._current].sign(message)

    def verify_own_signature(self, signature: bytes, message: bytes) -> bool:
        """Tell whether `sign` returned this for the message, now or under a retired key."""
        signer = self._signers.get(signature[:_KEY_ID_BYTES])
        if signer is None:
            return False
        try:
            signer.public_key().verify(signature[_KEY_ID_BYTES:], message)
        except InvalidSignature:
            return False
        return True

    def public_keys(self) -> dict[str, str]:
        """Return the PEM of every public key that signatures are checked with, by its id in hex."""
        return {
            key_id.hex(): signer.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
            for key_id, signer in self._signers.items()
        }


def text_of_sealed(sealed: bytes) -> str:
    """Return a sealed value as a text."""
    return _SEALED_TEXT_PREFIX + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def sealed_of_text(text: str) -> bytes:
    """Return the sealed value of a text, empty if it does not have the form of one."""
    encoded = text.removeprefix(_SEALED_TEXT_PREFIX)
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)) if is_sealed_text(text) else b""
    except (binascii.Error, ValueError):
        return b""


def is_sealed_text(text: str) -> bool:
    """Tell whether a text has the form of a sealed one."""
    return _SEALED_TEXT.fullmatch(text) is not None


def associated_data(table: str, column: str, row_id: object, tenant_id: object) -> bytes:
    """Return the `aad` of a sealed value: the only place in the database where it opens."""
    return _length_prefixed((table, column, str(row_id), str(tenant_id)))


def new_token(prefix: str = "") -> tuple[str, bytes]:
    """Return a new secret token (256 random bits, URL-safe) and the hash to store instead of it."""
    secret = prefix + secrets.token_urlsafe(_TOKEN_BYTES)
    return secret, hash_token(secret)


def fingerprint(values: Sequence[object]) -> str:
    """Return an identifier of a row: SHA-256 in hex of these values as MessagePack."""
    return hashlib.sha256(_pack(values)).hexdigest()


def hash_token(secret: str) -> bytes:
    """Return the hash under which a token is stored. Only for secrets too random to be guessed."""
    return hashlib.sha256(secret.encode()).digest()


def hash_password(password: str) -> str:
    """Return the argon2id hash of a password, with its salt and cost, in PHC form."""
    return _PASSWORD_HASHER.hash(password)


def verify_password(password_hash: str | None, password: str) -> bool:
    """Tell whether a password is right. For None (no such user) it takes as long and returns False."""
    try:
        _PASSWORD_HASHER.verify(password_hash or _DUMMY_HASH, password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
    return password_hash is not None


def sign_request(secret: str | bytes, idempotency_key: str, path: str, body: bytes) -> str:
    """Return the signature of a Partner API request: base64 of HMAC-SHA256 over the three parts."""
    return base64.b64encode(_request_digest(secret, idempotency_key, path, body=body)).decode()


def verify_signature(
    shared_secrets: Iterable[str | bytes], idempotency_key: str, path: str, body: bytes, signature: str
) -> bool:
    """Tell whether a request was signed with one of the secrets (two while they are changed).

    Only the standard base64 of 32 bytes is a valid signature. Every secret is
    tried, in constant time.
    """
    try:
        signature_bytes = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    if base64.b64encode(signature_bytes) != signature.encode():
        return False
    matches = [
        hmac.compare_digest(signature_bytes, _request_digest(secret, idempotency_key, path, body=body))
        for secret in shared_secrets
    ]
    return any(matches)


_BODY_STARTS = frozenset(b"{[ \t\r\n\xef")
"""First bytes of JSON, a byte order mark included: no path has any of these characters."""


def is_unambiguous(idempotency_key: str, path: str, body: bytes) -> bool:
    """Tell whether the three signed parts, which are concatenated without separators, can be read in only one way."""
    return (
        _CANONICAL_UUID.fullmatch(idempotency_key) is not None
        and _PLAIN_PATH.fullmatch(path) is not None
        and (not body or body[0] in _BODY_STARTS)
    )


def _request_digest(secret: str | bytes, idempotency_key: str, path: str, body: bytes) -> bytes:
    key = secret.encode() if isinstance(secret, str) else secret
    return hmac.digest(key, idempotency_key.encode() + path.encode() + body, "sha256")


def _key_id(key: bytes) -> bytes:
    return hashlib.blake2b(key, person=b"billfold.key-id", digest_size=_KEY_ID_BYTES).digest()


def _derive_key(key: bytes, use: bytes) -> bytes:
    """Return the key for one use: 32 bytes that reveal nothing about the key itself."""
    return hashlib.blake2b(key, person=b"billfold." + use, digest_size=KEY_BYTES).digest()


def _length_prefixed(parts: Iterable[str]) -> bytes:
    """Join texts so that no two lists of texts give the same bytes."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4) + part for part in encoded)
