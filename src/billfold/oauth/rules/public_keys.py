"""Public keys in two formats, JWK and PEM, and the only algorithm of each kind."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from jwt.algorithms import Algorithm, ECAlgorithm, OKPAlgorithm, RSAPSSAlgorithm

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey
ALGORITHMS = ("ES256", "Ed25519", "EdDSA", "PS256")
"""The names of the signature algorithms in use. Ed25519 is what RFC 9864 calls the EdDSA of Ed25519."""
_NAMES = {"EdDSA": ("EdDSA", "Ed25519")}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
_COORDINATE_BYTES = 32
_RSA_BITS_MIN, _RSA_BITS_MAX = 2048, 4096
_EXPONENT_MIN, _EXPONENT_MAX = 65_537, 2**32


class InvalidKey(ValueError):
    """Not a usable public key; the text says why."""


class PublicKeyInfo(NamedTuple):
    """A public key ready for use, its algorithm, and its RFC 7638 thumbprint (SHA-256)."""

    key: PublicKey
    algorithm: str
    thumbprint: str


def base64url(value: bytes) -> str:
    """Return bytes in base64url without padding, as JOSE writes them."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def algorithm_names(algorithm: str) -> tuple[str, ...]:
    """Return all names of the one algorithm that a kind of key is used with."""
    return _NAMES.get(algorithm, (algorithm,))


def from_jwk(jwk: Mapping[str, Any]) -> PublicKeyInfo:
    """Return the key of a JWK. Raises InvalidKey for a private one, a weak one, another kind."""
    if _PRIVATE & jwk.keys():
        raise InvalidKey("the key is a private one")
    members = _MEMBERS.get(str(jwk.get("kty")))
    if members is None or not all(isinstance(jwk.get(each), str) for each in members):
        raise InvalidKey("the key type is not P-256, Ed25519 or RSA")
    return _parse_jwk(tuple((each, jwk[each]) for each in members))


@lru_cache(4096)
def from_pem(pem: str) -> PublicKeyInfo:
    """Return the key of a PEM (SubjectPublicKeyInfo). Raises InvalidKey like `from_jwk`."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidKey("it is not a public key in PEM") from None
    return from_jwk(to_jwk(key))


def to_jwk(key: object) -> dict[str, str]:
    """Return a public key as JWK. Raises InvalidKey for an unsupported kind."""
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1":
        point = key.public_numbers()
        x, y = (base64url(each.to_bytes(_COORDINATE_BYTES)) for each in (point.x, point.y))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}
    if isinstance(key, ed25519.Ed25519PublicKey):
        return {"kty": "OKP", "crv": "Ed25519", "x": base64url(key.public_bytes_raw())}
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        return {"kty": "RSA", "n": _number_base64url(numbers.n), "e": _number_base64url(numbers.e)}
    raise InvalidKey("the key type is not P-256, Ed25519 or RSA")


def to_pem(key: PublicKey) -> str:
    """Return a public key as PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@lru_cache(16_384)
def _parse_jwk(members: tuple[tuple[str, str], ...]) -> PublicKeyInfo:
    """Read a JWK given by the members of its thumbprint, in their order."""
    jwk = dict(members)
    canonical = json.dumps(jwk, separators=(",", ":"), sort_keys=True).encode()
    thumbprint = base64url(hashlib.sha256(canonical).digest())
    try:
        if jwk["kty"] == "EC":
            return PublicKeyInfo(_p256(jwk), "ES256", thumbprint)
        if jwk["kty"] == "OKP":
            return PublicKeyInfo(_ed25519(jwk), "EdDSA", thumbprint)
        return PublicKeyInfo(_rsa(jwk), "PS256", thumbprint)
    except (ValueError, binascii.Error) as error:
        raise (error if isinstance(error, InvalidKey) else InvalidKey("the key cannot be read")) from None


def _p256(jwk: Mapping[str, str]) -> PublicKey:
    if jwk["crv"] != "P-256":
        raise InvalidKey("the curve is not P-256")
    x, y = (_decode_base64url(jwk[each], _COORDINATE_BYTES) for each in ("x", "y"))
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + x + y)


def _ed25519(jwk: Mapping[str, str]) -> PublicKey:
    if jwk["crv"] != "Ed25519":
        raise InvalidKey("the curve is not Ed25519")
    return ed25519.Ed25519PublicKey.from_public_bytes(_decode_base64url(jwk["x"], _COORDINATE_BYTES))


def _rsa(jwk: Mapping[str, str]) -> PublicKey:
    modulus, exponent = (int.from_bytes(_decode_base64url(jwk[each])) for each in ("n", "e"))
    if not _RSA_BITS_MIN <= modulus.bit_length() <= _RSA_BITS_MAX:
        raise InvalidKey(f"an RSA key has {_RSA_BITS_MIN} to {_RSA_BITS_MAX} bits")
    if not _EXPONENT_MIN <= exponent <= _EXPONENT_MAX:
        raise InvalidKey("the exponent of the RSA key is unusual")
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def _decode_base64url(text: str, length: int | None = None) -> bytes:
    """Return the bytes of base64url text; only one text is valid for each value, so that a key has one name."""
    decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if base64url(decoded) != text or (length is not None and len(decoded) != length):
        raise InvalidKey("a member of the key is not base64url of its length")
    return decoded


def _number_base64url(number: int) -> str:
    return base64url(number.to_bytes((number.bit_length() + 7) // 8))


_ALGORITHMS: dict[str, Algorithm] = {
    "ES256": ECAlgorithm(ECAlgorithm.SHA256),
    "EdDSA": OKPAlgorithm(),
    "PS256": RSAPSSAlgorithm(RSAPSSAlgorithm.SHA256),
}
_PARTS = 3
_INSTANT_MAX = 1e11


class Jws(NamedTuple):
    """A parsed signed text. Nothing in it is proven until `is_signed_by` confirms it."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes

    def is_signed_by(self, key: PublicKeyInfo) -> bool:
        """Return whether a key signed this, with the only algorithm of the key."""
        return verify_signature(key, self.signed, self.signature)


def verify_signature(key: PublicKeyInfo, signed: bytes, signature: bytes) -> bool:
    """Return whether a signature is a key's, made with the key's only algorithm."""
    return bool(_ALGORITHMS[key.algorithm].verify(signed, key.key, signature))


def parse_jws(text: str) -> Jws:
    """Return the parts of a signed text. Raises ValueError if it is not one.

    Critical header parameters other than its algorithm are not supported.
    """
    parts = text.encode("ascii").split(b".")
    if len(parts) != _PARTS:
        raise ValueError("it does not have three parts")
    header, claims = (_decode_object(part) for part in parts[:2])
    if "crit" in header or "b64" in header:
        raise ValueError("its header has members that are not supported")
    return Jws(header, claims, b".".join(parts[:2]), signature=_decode_part(parts[2]))


def instant_of(claims: Mapping[str, Any], name: str) -> datetime | None:
    """Return the instant of a claim (NumericDate, RFC 7519), or None without it. Raises ValueError."""
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
        decoded = msgspec.json.decode(_decode_part(part))
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("a part of it is not JSON") from None
    if not isinstance(decoded, dict):
        raise ValueError("a part of it is not an object")  # noqa: TRY004 - what was sent is wrong
    return decoded


def _decode_part(part: bytes) -> bytes:
    try:
        decoded = base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("a part of it is not base64url") from None
    return decoded
