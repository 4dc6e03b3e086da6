"""Signatures of the bank and their keys: JWS in compact form (RFC 7515), Ed25519, published as a JWKS.

The id of a key is its thumbprint, so it cannot stand for another key. `typ` states what was signed, so that a proof of
one kind is not accepted as another.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

import asyncpg
import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.dates import iso_z
from billfold.platform.errors import InvalidInput, NotFound
from billfold.reports.entries.types import LedgerPosition


class Figure(msgspec.Struct, frozen=True, array_like=True):
    """A figure as the document shows it: "Closing value" and "12,345.76"."""

    label: str
    value: str


class NamedPocket(msgspec.Struct, frozen=True):
    """A Pocket that a document covers."""

    id: UUID
    name: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a document, without its layout.

    `document` names it ("Brokerage statement for October 2026"), `at` is the time of its balances. `figures` are all
    figures shown, in display order, so that a changed one can be named.
    """

    bank: str
    document: str
    customer_id: UUID
    customer: str
    pockets: tuple[NamedPocket, ...]
    at: datetime
    position: LedgerPosition
    figures: tuple[Figure, ...]


class SignedBytes(msgspec.Struct, frozen=True, kw_only=True):
    """A file without its proof: its SHA-256 in hex, and for a text 6 bytes of that of every few lines."""

    sha256: str
    lines_per_mark: int = 0
    marks: str = ""


class SignedManifest(msgspec.Struct, frozen=True):
    """The payload of a document's signature."""

    manifest: Manifest
    content: SignedBytes


class PublicKey(NamedTuple):
    """A key of the bank that verifies signatures; its id is its thumbprint (RFC 7638).

    Signatures of times from `revoked_at` on are not accepted.
    """

    key_id: str
    key: Ed25519PublicKey
    revoked_at: datetime | None = None


class DocumentKey(NamedTuple):
    """A key that signs from an instant of the business clock until the next key does."""

    key_id: str
    active_at: datetime
    private: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        """The public key that verifies its signatures."""
        return PublicKey(self.key_id, self.private.public_key())


DOCUMENT: Final = "billfold-document+jws"
ROOT: Final = "billfold-root+jws"
_KEY_BYTES = 32
_PARTS = 3
Payload = TypeVar("Payload", bound=msgspec.Struct)


class Unproven(Exception):
    """A signature attributed to the bank is not valid; the message is a sentence with the reason."""


class UnknownKey(Unproven):
    """The signing key is not among those given."""


class RevokedKey(Unproven):
    """The key was revoked at the time of the signature."""


def thumbprint(key: Ed25519PublicKey) -> str:
    """Return the id of a key (RFC 7638, 8037)."""
    jwk = {"crv": "Ed25519", "kty": "OKP", "x": _encode(key.public_bytes_raw())}
    return _encode(hashlib.sha256(msgspec.json.encode(jwk)).digest())


def to_jwk(key: Ed25519PublicKey, revoked_at: datetime | None = None) -> dict[str, object]:
    """Return a public key as a JWK; a revocation is written as in the historical keys of OpenID Federation."""
    jwk: dict[str, object] = {"kty": "OKP", "crv": "Ed25519", "x": _encode(key.public_bytes_raw())}
    jwk |= {"kid": thumbprint(key), "alg": "EdDSA", "use": "sig"}
    return jwk if revoked_at is None else jwk | {"revoked": {"revoked_at": int(revoked_at.timestamp())}}


def refuse_revoked(keys: Iterable[PublicKey], key_id: str, at: datetime) -> None:
    """Raise RevokedKey if the key was revoked at an instant."""
    revoked_at = next((each.revoked_at for each in keys if each.key_id == key_id), None)
    if revoked_at is not None and at >= revoked_at:
        raise RevokedKey(
            f"The bank revoked the key {key_id} at {iso_z(revoked_at)}; this is of {iso_z(at)}, after that."
        )


def payload_of(jws: str, payload: type[Payload]) -> Payload:
    """Return what the bank signed itself, without a check of the signature."""
    return msgspec.json.decode(_decode(jws.split(".")[1]), type=payload)


def jwks_document(keys: Iterable[PublicKey]) -> dict[str, list[dict[str, object]]]:
    """Return the JWKS document."""
    return {"keys": [to_jwk(each.key, each.revoked_at) for each in keys]}


def parse_keys(content: bytes) -> list[PublicKey]:
    """Return the Ed25519 keys of a JWKS, a JWK or a PEM file. Raises Unproven."""
    if content.lstrip().startswith(b"-----BEGIN"):
        return [_from_pem(content)]
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
        jwks = document.get("keys", [document])
        keys = [_from_jwk(each) for each in jwks if each.get("crv") == "Ed25519"]
    except (AttributeError, KeyError, OverflowError, OSError, TypeError, ValueError, msgspec.MsgspecError):
        raise Unproven("The key file is neither a JWKS nor a PEM file of Ed25519 keys.") from None
    if not keys:
        raise Unproven("The key file has no Ed25519 key.")
    return keys


def sign(payload: msgspec.Struct, key: DocumentKey, typ: str) -> str:
    """Return a payload with its signature; the same payload and key give the same text."""
    header = {"alg": "EdDSA", "kid": key.key_id, "typ": typ}
    signed = f"{_encode(msgspec.json.encode(header))}.{_encode(msgspec.json.encode(payload))}"
    return f"{signed}.{_encode(key.private.sign(signed.encode()))}"


def verify(jws: str, keys: Iterable[PublicKey], typ: str, payload: type[Payload]) -> tuple[Payload, str]:
    """Return the signed payload and the id of the key. Raises Unproven."""
    parts = jws.split(".")
    if len(parts) != _PARTS:
        raise Unproven("The proof is cut off.")
    try:
        header: Mapping[str, Any] = msgspec.json.decode(_decode(parts[0]), type=dict[str, Any])
        signature, body = _decode(parts[2]), _decode(parts[1])
    except (ValueError, msgspec.MsgspecError):
        raise Unproven("The proof is damaged.") from None
    if header.get("alg") != "EdDSA" or header.get("typ") != typ:
        raise Unproven("The proof is of another kind.")
    key = next((each for each in keys if each.key_id == header.get("kid")), None)
    if key is None:
        raise UnknownKey(f"It is signed with the key {header.get('kid')}, which is not in the key file.")
    try:
        key.key.verify(signature, f"{parts[0]}.{parts[1]}".encode())
        return msgspec.json.decode(body, type=payload), key.key_id
    except InvalidSignature:
        raise Unproven("The signature does not hold: the proof was altered.") from None
    except msgspec.MsgspecError:
        raise Unproven("The proof is of a later release.") from None


def _from_jwk(jwk: Mapping[str, Any]) -> PublicKey:
    raw = _decode(jwk["x"])
    if len(raw) != _KEY_BYTES:
        raise ValueError("not a key")
    key = _named(Ed25519PublicKey.from_public_bytes(raw))
    if jwk.get("kid", key.key_id) != key.key_id:
        raise Unproven(f"The key file is forged: the key that it calls {jwk['kid']} is {key.key_id}.")
    if "revoked" in jwk:
        return key._replace(revoked_at=datetime.fromtimestamp(jwk["revoked"]["revoked_at"], UTC))
    return key


def _from_pem(content: bytes) -> PublicKey:
    try:
        key = load_pem_public_key(content)
    except ValueError:
        raise Unproven("The key file is damaged.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise Unproven("The key file has no Ed25519 key.")
    return _named(key)


def _named(key: Ed25519PublicKey) -> PublicKey:
    return PublicKey(thumbprint(key), key)


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(raw) != text:
        raise ValueError("not canonical")
    return raw


KEYS_PATH: Final = "/.well-known/document-keys.json"
"""The path of the public keys, on the hosts of both APIs."""
PUBLICATION_LEAD: Final = timedelta(hours=1)
"""Time for which a new key is published before it signs: longer than the published keys are cached."""
_KEYS = "document_key LEFT JOIN document_key_revocation USING (key_id)"
_LIST_PUBLIC = f"SELECT key_id, public_key, revoked_at FROM {_KEYS} ORDER BY key_no"
_LIST = f"SELECT key_id, active_at, revoked_at FROM {_KEYS} ORDER BY key_no"
_FIND_OF = f"""
SELECT key_id, active_at, sealed FROM {_KEYS}
 WHERE revoked_at IS NULL OR revoked_at > $1
 ORDER BY CASE WHEN key_no = 1 OR active_at <= $1 THEN key_no ELSE -key_no END DESC LIMIT 1
"""
_REVOKE = """
INSERT INTO document_key_revocation (key_id, revoked_at, recorded_at, reason)
SELECT key_id, $2, $3, $4 FROM document_key WHERE key_id = $1
"""
_IS_ANY_LEFT = f"SELECT EXISTS (SELECT 1 FROM {_KEYS} WHERE revoked_at IS NULL)"
_NEW = """
INSERT INTO document_key (key_no, key_id, public_key, sealed, created_at, active_at)
SELECT coalesce(max(key_no), 0) + 1, $1, $2, $3, $4, $5 FROM document_key
"""
_NEW_FIRST = """
INSERT INTO document_key (key_no, key_id, public_key, sealed, created_at, active_at)
VALUES (1, $1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
"""


async def get_document_key(pool: Pool, vault: Vault, at: datetime) -> DocumentKey:
    """Return the key that signs documents of a given time: the last one active by then, or the first.

    A key that was revoked by then signs none of them; the next one does. The first key is created on demand. Load a
    key before a transaction.
    """
    row = await pool.fetchrow(_FIND_OF, at)
    if row is None:
        await _create_key(pool, vault, _NEW_FIRST, now=at, active_at=at)
        row = await pool.fetchrow(_FIND_OF, at)
        assert row is not None
    opened = vault.open(row["sealed"], _place(row["key_id"]))
    return DocumentKey(row["key_id"], row["active_at"], Ed25519PrivateKey.from_private_bytes(opened))


async def list_public_keys(conn: Db) -> Sequence[PublicKey]:
    """Return all keys ever created, oldest first."""
    return [
        PublicKey(row["key_id"], Ed25519PublicKey.from_public_bytes(row["public_key"]), row["revoked_at"])
        for row in await conn.fetch(_LIST_PUBLIC)
    ]


async def list_keys(conn: Connection) -> list[tuple[str, datetime, datetime | None]]:
    """Return the id of every key, when it began to sign, and when it was revoked, oldest first."""
    return [(row["key_id"], row["active_at"], row["revoked_at"]) for row in await conn.fetch(_LIST)]


async def rotate_document_key(pool: Pool, vault: Vault, now: datetime) -> str:
    """Create the next key, which signs after `PUBLICATION_LEAD`; return its id. `now` is business time."""
    await get_document_key(pool, vault, now)
    return await _create_key(pool, vault, _NEW, now=now, active_at=now + PUBLICATION_LEAD)


async def revoke_document_key(
    pool: Pool, vault: Vault, key_id: str, *, revoked_at: datetime, reason: str, now: datetime
) -> str:
    """Revoke a key for good, from an instant that is not in the future; return the id of the one that signs now.

    If there is no other key, a new one is created and signs at once. Raises InvalidInput, NotFound.
    """
    if revoked_at > now:
        raise InvalidInput.at("since", msg="a key is revoked as of now, or of an earlier time")
    async with pool.acquire() as conn, conn.transaction():
        try:
            done = await conn.execute(_REVOKE, key_id, revoked_at.replace(microsecond=0), now, reason)
        except asyncpg.UniqueViolationError:
            raise InvalidInput.at("key", msg=f"{key_id} is revoked already") from None
        if done.endswith(" 0"):
            raise NotFound(f"There is no key {key_id}.")
        if not await conn.fetchval(_IS_ANY_LEFT):
            await _create_key(conn, vault, _NEW, now=now, active_at=now)
    return (await get_document_key(pool, vault, now)).key_id


async def _create_key(conn: Db, vault: Vault, statement: str, *, now: datetime, active_at: datetime) -> str:
    private = Ed25519PrivateKey.generate()
    key_id = thumbprint(private.public_key())
    sealed = vault.seal(private.private_bytes_raw(), _place(key_id))
    await conn.execute(statement, key_id, private.public_key().public_bytes_raw(), sealed, now, active_at)
    return key_id


def _place(key_id: str) -> bytes:
    return associated_data("document_key", "sealed", key_id, tenant_id="")
