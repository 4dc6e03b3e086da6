"""Proofs of possession (RFC 9449): each request is signed by the key its token is bound to.

`check` is pure; `burn_proof` ensures across all processes that a proof is used only once.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from billfold.oauth.rules import public_keys
from billfold.oauth.rules.public_keys import ALGORITHMS
from billfold.oauth.types import OAuthError, invalid_dpop_proof
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Db

LEEWAY_SECONDS = 10
_LEEWAY = timedelta(seconds=LEEWAY_SECONDS)
_ROUNDING = timedelta(seconds=1)
"""Clients cut their `iat` to whole seconds."""
NONCE_STEP_SECONDS = 60
_PROOF_CHARS_MAX = 8192
_JTI_CHARS_MAX = 255
_PORTS = {"https": 443, "http": 80}
_CONSUME = """
INSERT INTO consumed_dpop_proof AS d (jkt, jti_hash, expires_at) VALUES ($1, $2, $3)
ON CONFLICT (jkt, jti_hash) DO NOTHING RETURNING true
"""


class Proof(NamedTuple):
    """A valid proof: its key, and the time until which it must not be used again."""

    jkt: str
    jti: str
    until: datetime


class Nonces:
    """Stateless nonces: the signature of a minute of the wall clock."""

    def __init__(self, vault: Vault) -> None:
        self._key = vault.blind_index("key", "dpop nonce")

    def current(self, now: datetime) -> str:
        """Return the current nonce for a client."""
        return self._of(int(now.timestamp()) // NONCE_STEP_SECONDS)

    def is_valid(self, nonce: object, now: datetime) -> bool:
        """Return whether a nonce belongs to this minute, the last, or the next."""
        if not isinstance(nonce, str) or not nonce.isascii():
            return False
        step = int(now.timestamp()) // NONCE_STEP_SECONDS
        known = [self._of(each) for each in (step - 1, step, step + 1)]
        return any(hmac.compare_digest(nonce, each) for each in known)

    def _of(self, step: int) -> str:
        return public_keys.base64url(hmac.digest(self._key, str(step).encode(), "sha256"))


def verify_proof(
    proof_jwt: str | None,
    *,
    method: str,
    url: str,
    now: datetime,
    nonces: Nonces,
    requires_nonce: bool = False,
    token: str | None = None,
) -> Proof:
    """Return the proof in the DPoP header of a request.

    `url` is the public address of the service and the path as sent, never the Host header;
    `token` the access token that comes with the proof. Raises OAuthError `invalid_dpop_proof`,
    or `use_dpop_nonce`: repeat the request with the nonce of the response.
    """
    key, claims = _verify_signature(proof_jwt)
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 1 <= len(jti) <= _JTI_CHARS_MAX:
        raise invalid_dpop_proof("jti must be a text of 1 to 255 characters.")
    if claims.get("htm") != method:
        raise invalid_dpop_proof("htm is not the method of this request.")
    if not _is_same(claims.get("htu"), url):
        raise invalid_dpop_proof("htu is not the address of this request.")
    if token is not None and not _is_hash_of(claims.get("ath"), token):
        raise invalid_dpop_proof("ath is not the hash of the access token.")
    issued_at = _issued_at(claims, now)
    if (requires_nonce or "nonce" in claims) and not nonces.is_valid(claims.get("nonce"), now):
        raise OAuthError("use_dpop_nonce", "Send the proof with the nonce of the DPoP-Nonce header.")
    # One second longer than `_issued_at` accepts it.
    until = issued_at + _LEEWAY + _ROUNDING + timedelta(seconds=1)
    return Proof(key.thumbprint, jti, until)


async def consume_proof(conn: Db, jkt: str, jti: str, until: datetime) -> bool:
    """Return whether a proof is used for the first time, and mark it as used."""
    jti_hash = hashlib.sha256(jti.encode("utf-8", "surrogatepass")).digest()
    return await conn.fetchval(_CONSUME, jkt, jti_hash, until) is True


def _verify_signature(proof_jwt: str | None) -> tuple[public_keys.PublicKeyInfo, Mapping[str, Any]]:
    """Return the key a proof is signed with and its claims."""
    if proof_jwt is None:
        raise invalid_dpop_proof("The request has no DPoP header.")
    if "," in proof_jwt or len(proof_jwt) > _PROOF_CHARS_MAX:
        raise invalid_dpop_proof("The request must have exactly one DPoP header of at most 8192 characters.")
    try:
        found = public_keys.parse_jws(proof_jwt)
        key = _key_of(found.header)
    except ValueError as error:
        raise invalid_dpop_proof(f"The DPoP proof is invalid: {error}.") from None
    if not found.is_signed_by(key):
        raise invalid_dpop_proof("The DPoP proof is invalid: it is not signed by its key.")
    return key, found.claims


def _key_of(header: Mapping[str, Any]) -> public_keys.PublicKeyInfo:
    if header.get("typ") != "dpop+jwt":
        raise public_keys.InvalidKey("typ must be dpop+jwt")
    jwk = header.get("jwk")
    if not isinstance(jwk, dict):
        raise public_keys.InvalidKey("its header has no public key (jwk)")
    key = public_keys.from_jwk(jwk)
    if header.get("alg") not in public_keys.algorithm_names(key.algorithm):
        raise public_keys.InvalidKey(f"alg must be one of {', '.join(ALGORITHMS)} and fit the key")
    return key


def _issued_at(claims: Mapping[str, Any], now: datetime) -> datetime:
    """Return `iat`. Raises unless it is within the leeway of now, and `exp` and `nbf` allow it."""
    try:
        issued_at, expires_at, valid_from = (public_keys.instant_of(claims, name) for name in ("iat", "exp", "nbf"))
    except ValueError as error:
        raise invalid_dpop_proof(f"{error}.") from None
    if issued_at is None:
        raise invalid_dpop_proof("iat is missing.")
    if abs(now - issued_at) > _LEEWAY + _ROUNDING:
        raise invalid_dpop_proof(f"iat must be within {LEEWAY_SECONDS} seconds of now.")
    if expires_at is not None and expires_at + _LEEWAY < now:
        raise invalid_dpop_proof("The proof has expired.")
    if valid_from is not None and valid_from - _LEEWAY - _ROUNDING > now:
        raise invalid_dpop_proof("The proof is not valid yet.")
    return issued_at


def _is_same(htu: object, url: str) -> bool:
    """Return whether two addresses are equal: scheme and host in any case, no query, path exactly."""
    if not isinstance(htu, str) or htu != htu.strip():
        return False
    try:
        return _normalized(htu) == _normalized(url)
    except ValueError:
        return False


def _normalized(url: str) -> tuple[str, str, int | None, str]:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address of ours names no user")
    scheme = parts.scheme.lower()
    port = parts.port or _PORTS.get(scheme)
    return scheme, (parts.hostname or "").lower(), port, parts.path or "/"


def _is_hash_of(ath: object, token: str) -> bool:
    digest = public_keys.base64url(hashlib.sha256(token.encode()).digest())
    return isinstance(ath, str) and hmac.compare_digest(ath.encode(), digest.encode())
