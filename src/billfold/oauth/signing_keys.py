"""The keys that sign ID tokens: sealed at rest, published, replaced without a gap.

A new key is published before it is used, and an old one as long as its signatures are valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_der_private_key

from billfold.oauth.rules.public_keys import from_jwk, to_jwk
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import InvariantError

ALGORITHMS = ("PS256", "RS256")
"""PS256 signs for fapi2 clients, RS256 for documented ones."""
PUBLICATION_LEAD = timedelta(minutes=15)
"""Time for which a new key is published before it is used: longer than clients cache the old set."""
RETIRED_KEY_PUBLICATION = timedelta(days=1)
_RSA_BITS, _EXPONENT = 3072, 65_537
_PUBLISHED = """
SELECT key_id, algorithm, public_jwk, sealed, active_at, retires_at FROM signing_key
 WHERE retires_at IS NULL OR retires_at > $1 ORDER BY active_at DESC, key_id
"""
_NEW = """
INSERT INTO signing_key (key_id, algorithm, public_jwk, sealed, created_at, active_at)
VALUES ($1, $2, $3, $4, $5, $6)
"""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A published key, opened."""

    key_id: str
    algorithm: str
    public_jwk: dict[str, str]
    private: rsa.RSAPrivateKey = field(repr=False)
    active_at: datetime
    retires_at: datetime | None


async def list_published_keys(conn: Db, vault: Vault, now: datetime) -> list[SigningKey]:
    """Return the active keys and those still accepted, the newest first."""
    return [_unseal(row, vault) for row in await conn.fetch(_PUBLISHED, now)]


async def ensure_signing_keys(conn: Connection, vault: Vault, now: datetime) -> None:
    """Create the first keys if there are none. Creating one takes a second of this thread."""
    async with conn.transaction():
        await conn.execute("LOCK TABLE signing_key IN SHARE ROW EXCLUSIVE MODE")
        algorithms_present = {key.algorithm for key in await list_published_keys(conn, vault, now)}
        for algorithm in ALGORITHMS:
            if algorithm not in algorithms_present:
                await _create_key(conn, vault, algorithm, now=now, active_at=now)


async def rotate_signing_keys(conn: Connection, vault: Vault, now: datetime) -> list[str]:
    """Replace the keys: new ones sign after `PUBLICATION_LEAD`, the old ones are published for another day.

    Returns the new key ids.
    """
    active_at = now + PUBLICATION_LEAD
    retires_at = active_at + RETIRED_KEY_PUBLICATION
    async with conn.transaction():
        await conn.execute("LOCK TABLE signing_key IN SHARE ROW EXCLUSIVE MODE")
        await conn.execute("UPDATE signing_key SET retires_at = $1 WHERE retires_at IS NULL", retires_at)
        return [await _create_key(conn, vault, algorithm, now=now, active_at=active_at) for algorithm in ALGORITHMS]


def jwks_document(keys: Sequence[SigningKey]) -> dict[str, list[dict[str, str]]]:
    """Return the JWKS document."""
    return {"keys": [{**key.public_jwk, "kid": key.key_id, "alg": key.algorithm, "use": "sig"} for key in keys]}


def sign(keys: Sequence[SigningKey], algorithm: str, claims: dict[str, Any], now: datetime) -> str:
    """Return a JWT signed with the newest active key of an algorithm."""
    for key in keys:
        if key.algorithm == algorithm and key.active_at <= now:
            return jwt.encode(claims, key.private, algorithm, headers={"kid": key.key_id})
    raise InvariantError("There is no key to sign ID tokens with.", algorithm=algorithm)


def verify_id_token(keys: Sequence[SigningKey], token: str, *, issuer: str) -> dict[str, Any] | None:
    """Return the claims of one of our ID tokens, expired or not; None for any other text."""
    try:
        key_id = jwt.get_unverified_header(token).get("kid")
        key = next(each for each in keys if each.key_id == key_id)
        claims: dict[str, Any] = jwt.decode(
            token,
            key.private.public_key(),
            [key.algorithm],
            issuer=issuer,
            options={"verify_exp": False, "verify_aud": False},
        )
    except (jwt.PyJWTError, StopIteration, ValueError, RecursionError):
        return None
    return claims


async def _create_key(conn: Connection, vault: Vault, algorithm: str, now: datetime, *, active_at: datetime) -> str:
    private = rsa.generate_private_key(_EXPONENT, _RSA_BITS)
    jwk = to_jwk(private.public_key())
    key_id = from_jwk(jwk).thumbprint
    der = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    sealed = vault.seal(der, secret_place(key_id))
    await conn.execute(_NEW, key_id, algorithm, msgspec.json.encode(jwk).decode(), sealed, now, active_at)
    return key_id


def _unseal(row: Any, vault: Vault) -> SigningKey:  # noqa: ANN401 - a record of asyncpg
    # Checking its numbers for primality takes 0.15 s; the seal proves that it is the key we made.
    private = load_der_private_key(
        vault.open(row["sealed"], secret_place(row["key_id"])), None, unsafe_skip_rsa_key_validation=True
    )
    if not isinstance(private, rsa.RSAPrivateKey):
        raise InvariantError("A signing key has the wrong type.")
    public: dict[str, str] = msgspec.json.decode(row["public_jwk"])
    return SigningKey(
        row["key_id"],
        row["algorithm"],
        public,
        private=private,
        active_at=row["active_at"],
        retires_at=row["retires_at"],
    )


def secret_place(key_id: str) -> bytes:
    """Return the only place where a private key opens."""
    return associated_data("signing_key", "sealed", key_id, tenant_id="")
