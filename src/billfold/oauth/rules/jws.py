"""Signed texts in their compact form (RFC 7515): taken apart once, verified by the library."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from jwt.algorithms import Algorithm, ECAlgorithm, OKPAlgorithm, RSAPSSAlgorithm

from billfold.oauth.rules.public_keys import PublicKeyInfo

_ALGORITHMS: dict[str, Algorithm] = {
    "ES256": ECAlgorithm(ECAlgorithm.SHA256),
    "EdDSA": OKPAlgorithm(),
    "PS256": RSAPSSAlgorithm(RSAPSSAlgorithm.SHA256),
}
_PARTS = 3
_INSTANT_MAX = 1e11


class Jws(NamedTuple):
    """A signed text taken apart. Nothing of it is proven before `is_signed_by` says so."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes

    def is_signed_by(self, key: PublicKeyInfo) -> bool:
        """Return whether a key signed this, with the one algorithm that is the key's own."""
        return verify_signature(key, self.signed, self.signature)


def verify_signature(key: PublicKeyInfo, signed: bytes, signature: bytes) -> bool:
    """Return whether a signature is a key's, made with the one algorithm that is its own."""
    return bool(_ALGORITHMS[key.algorithm].verify(signed, key.key, signature))


def parse_jws(text: str) -> Jws:
    """Return the parts of a signed text. Raises ValueError when it is none.

    What its header asks to be understood beyond its algorithm is not understood here.
    """
    parts = text.encode("ascii").split(b".")
    if len(parts) != _PARTS:
        raise ValueError("it does not have three parts")
    header, claims = (_decode_object(part) for part in parts[:2])
    if "crit" in header or "b64" in header:
        raise ValueError("its header has members that are not understood")
    return Jws(header, claims, b".".join(parts[:2]), signature=_decode_base64url(parts[2]))


def instant_of(claims: Mapping[str, Any], name: str) -> datetime | None:
    """Return the instant a claim stands for (NumericDate, RFC 7519), or None without it. Raises ValueError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number of seconds")  # noqa: TRY004 - what was sent is wrong
    if not 0 <= value < _INSTANT_MAX:
        raise ValueError(f"{name} is not an instant")
    return datetime.fromtimestamp(value, UTC)


def _decode_object(part: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(_decode_base64url(part))
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("a part of it is not JSON") from None
    if not isinstance(decoded, dict):
        raise ValueError("a part of it is no object")  # noqa: TRY004 - what was sent is wrong
    return decoded


def _decode_base64url(part: bytes) -> bytes:
    try:
        decoded = base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("a part of it is not base64url") from None
    return decoded
