"""Signatures of the bank: JWS in compact form (RFC 7515), Ed25519, with keys published as a JWKS.

The id of a key is its thumbprint, so it cannot stand for another key. `typ` states what was signed, so that a proof of
one kind is not accepted as another.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from billfold.platform.dates import iso_z
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
