"""Creates and revokes partners and their credentials. `now` is wall time."""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from billfold.identity.partners import rules
from billfold.identity.partners.rules import NewPartner
from billfold.identity.partners.store import secret_context
from billfold.identity.users import lockout
from billfold.platform import crypto, ids
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.platform.ids import command_id

_RSA_BITS_MIN = 2048
_OWN_NETWORK = "partner_login.network"
_OWN_NETWORK_KEPT = timedelta(days=90)
_IS_OWN = "SELECT true FROM usage_count WHERE subject = $1 AND kind = $2 AND expires_at > $3"
_KEEP_OWN = """
INSERT INTO usage_count (subject, kind, used, expires_at) VALUES ($1, $2, 1, $3)
ON CONFLICT (subject, kind) DO UPDATE SET expires_at = excluded.expires_at
"""

_NEW_PARTNER = """
INSERT INTO partner (partner_id, slug, name, own_customer_id, features, rate_per_minute,
                     money_per_minute, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_INSERT_SECRET = """
INSERT INTO partner_secret (partner_id, secret_no, sealed, created_at) VALUES ($1, $2, $3, $4)
"""  # noqa: S105 - a name, not a secret
# The newest valid secret gets the overlap; one that was already being replaced ends now.
_RETIRE = """
UPDATE partner_secret
   SET expires_at = CASE WHEN expires_at IS NULL THEN $3::timestamptz ELSE $2 END
 WHERE partner_id = $1 AND (expires_at IS NULL OR expires_at > $2)
"""
_REVOKE_KEY = """
WITH revoked AS (
  UPDATE partner_key SET revoked_at = $2 WHERE key_id = $1 AND revoked_at IS NULL RETURNING key_id, user_id
), ended AS (
  DELETE FROM partner_token t USING revoked r WHERE t.user_id = r.user_id
)
SELECT key_id FROM revoked
"""
_DISABLE_USER = """
WITH disabled AS (
  UPDATE partner_user SET disabled_at = $2 WHERE user_id = $1 AND disabled_at IS NULL
), revoked AS (
  UPDATE partner_key SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL RETURNING 1
), ended AS (
  DELETE FROM partner_token WHERE user_id = $1
)
SELECT count(*) FROM revoked
"""
_SET_FEATURE = """
UPDATE partner SET features = array_remove(features, $2::text) || $3::text[], version = version + 1
 WHERE partner_id = $1 RETURNING partner_id
"""


async def create_partner(
    conn: Connection,
    vault: Vault,
    *,
    slug: str,
    name: str,
    own_customer_id: UUID,
    rate_per_minute: int,
    money_per_minute: int,
    now: datetime,
    features: Iterable[str] = (),
    partner_id: UUID | None = None,
) -> NewPartner:
    """Create a partner with its first signing secret. `own_customer_id` is enrolled elsewhere.

    Raises InvalidInput at slug, Refused `duplicate-id` when it is taken.
    """
    rules.check_slug(slug)
    partner_id = partner_id or ids.new()
    row = (partner_id, slug, name, own_customer_id, sorted(set(features)), rate_per_minute, money_per_minute, now)
    async with conn.transaction():
        try:
            await conn.execute(_NEW_PARTNER, *row)
        except asyncpg.UniqueViolationError:
            raise Refused("duplicate-id", f"There is a partner {slug!r} already.") from None
        secret = await _add_secret(conn, vault, partner_id, now=now)
    return NewPartner(partner_id, secret)


async def rotate_secret(conn: Connection, vault: Vault, partner_id: UUID, *, now: datetime) -> str:
    """Return a new signing secret, shown once. The former stays valid for a day."""
    async with conn.transaction():
        found = await conn.fetchval("SELECT 1 FROM partner WHERE partner_id = $1 FOR UPDATE", partner_id)
        if found is None:
            raise NotFound("There is no such partner.")
        await conn.execute(_RETIRE, partner_id, now, now + rules.OVERLAP)
        return await _add_secret(conn, vault, partner_id, now=now)


async def create_partner_user(
    conn: Db,
    partner_id: UUID,
    *,
    username: str,
    password: str,
    now: datetime,
    user_id: UUID | None = None,
) -> UUID:
    """Create a user who may log in for the partner. Raises InvalidInput, Refused `duplicate-id`.

    Hashing the password takes about 30 ms of this thread.
    """
    rules.check_username(username)
    rules.check_password(password)
    user_id = user_id or ids.new()
    try:
        await conn.execute(
            "INSERT INTO partner_user (user_id, partner_id, username, password_hash, created_at) "
            "VALUES ($1, $2, $3, $4, $5)",
            user_id,
            partner_id,
            username,
            crypto.hash_password(password),
            now,
        )
    except asyncpg.UniqueViolationError:
        raise Refused("duplicate-id", f"There is a user {username!r} already.") from None
    return user_id


async def set_partner_password(conn: Db, user_id: UUID, password: str) -> None:
    """Give a user a new password and unlock them; their tokens end."""
    rules.check_password(password)
    username = await conn.fetchval(
        "WITH ended AS (DELETE FROM partner_token WHERE user_id = $1) UPDATE partner_user "
        "SET password_hash = $2 WHERE user_id = $1 RETURNING username",
        user_id,
        crypto.hash_password(password),
    )
    await lockout.clear_attempts(conn, lockout.partner_subject(username))


async def register_partner_key(conn: Db, user_id: UUID, *, algorithm: str, public_pem: str, now: datetime) -> str:
    """Register a public key (PEM) for assertions of a user and return its key id.

    The id is the beginning of the key's own hash. Raises InvalidInput if the key does not fit
    the algorithm, Refused `duplicate-id` if it is registered already.
    """
    pem, fingerprint = _checked_key(algorithm, public_pem)
    key_id = fingerprint[:32]
    try:
        await conn.execute(
            "INSERT INTO partner_key (key_id, user_id, algorithm, public_pem, created_at) VALUES ($1, $2, $3, $4, $5)",
            key_id,
            user_id,
            algorithm,
            pem,
            now,
        )
    except asyncpg.UniqueViolationError:
        raise Refused("duplicate-id", f"The key {key_id} is registered already.") from None
    return key_id


async def revoke_partner_key(conn: Db, key_id: str, *, now: datetime) -> None:
    """Revoke a key; tokens of its user end. Raises NotFound if no valid key has that id."""
    if await conn.fetchval(_REVOKE_KEY, key_id, now) is None:
        raise NotFound("There is no such key.")


async def disable_partner_user(conn: Db, user_id: UUID, *, now: datetime) -> int:
    """Disable a user for good: tokens end, keys are revoked. Return how many keys were."""
    revoked: int = await conn.fetchval(_DISABLE_USER, user_id, now)
    return revoked


async def set_feature(conn: Db, partner_id: UUID, feature: str, *, enabled: bool) -> None:
    """Switch a feature of a partner on or off. Raises NotFound."""
    updated = await conn.fetchval(_SET_FEATURE, partner_id, feature, [feature] if enabled else [])
    if updated is None:
        raise NotFound("There is no such partner.")


async def set_allowed_networks(conn: Db, partner_id: UUID, networks: Iterable[str]) -> None:
    """Set the networks that a partner may call from, as CIDR; empty: from anywhere."""
    await conn.execute(
        "UPDATE partner SET allowed_networks = $2::text[]::cidr[], version = version + 1 WHERE partner_id = $1",
        partner_id,
        sorted(set(networks)),
    )


async def set_limits(conn: Db, partner_id: UUID, *, rate_per_minute: int, money_per_minute: int) -> None:
    """Set the requests per minute, and those that move money, that each token may send."""
    await conn.execute(
        "UPDATE partner SET rate_per_minute = $2, money_per_minute = $3, version = version + 1 WHERE partner_id = $1",
        partner_id,
        rate_per_minute,
        money_per_minute,
    )


async def issue_token(conn: Db, *, partner_id: UUID, user_id: UUID, now: datetime) -> tuple[str, datetime]:
    """Return a new access token and when it expires. Only its hash is kept."""
    secret, token_hash = crypto.new_token()
    expires_at = now + rules.TOKEN_LIFETIME
    await conn.execute(
        "INSERT INTO partner_token (token_hash, partner_id, user_id, issued_at, expires_at) "
        "VALUES ($1, $2, $3, $4, $5)",
        token_hash,
        partner_id,
        user_id,
        now,
        expires_at,
    )
    return secret, expires_at


async def consume_assertion(conn: Db, *, issuer: str, jti: str, expires_at: datetime) -> bool:
    """Return whether an assertion is used for the first time, and mark it as used."""
    updated = await conn.fetchval(
        "INSERT INTO consumed_assertion (issuer, jti_hash, expires_at) VALUES ($1, $2, $3) "
        "ON CONFLICT DO NOTHING RETURNING true",
        issuer,
        hashlib.sha256(jti.encode()).digest(),
        expires_at,
    )
    return updated is True


async def _add_secret(conn: Connection, vault: Vault, partner_id: UUID, now: datetime) -> str:
    number: int = await conn.fetchval(
        "SELECT coalesce(max(secret_no), 0) + 1 FROM partner_secret WHERE partner_id = $1", partner_id
    )
    secret, _ = crypto.new_token()
    sealed = vault.seal(secret.encode(), secret_context(partner_id, number))
    await conn.execute(_INSERT_SECRET, partner_id, number, sealed, now)
    return secret


def _checked_key(algorithm: str, public_pem: str) -> tuple[str, str]:
    """Return the key as normalised PEM and the hash of it in hexadecimal."""
    try:
        key = load_pem_public_key(public_pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput.at("public_pem", msg="must be a public key in PEM") from None
    is_suitable = {
        "ES256": isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1",
        "EdDSA": isinstance(key, ed25519.Ed25519PublicKey),
        "PS256": isinstance(key, rsa.RSAPublicKey) and key.key_size >= _RSA_BITS_MIN,
        "RS256": isinstance(key, rsa.RSAPublicKey) and key.key_size >= _RSA_BITS_MIN,
    }
    if algorithm not in is_suitable:
        raise InvalidInput.at("algorithm", msg=f"must be one of {', '.join(rules.ALGORITHMS)}")
    if not is_suitable[algorithm]:
        raise InvalidInput.at("public_pem", msg=f"must be a key that {algorithm} can use")
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode(), hashlib.sha256(der).hexdigest()


async def is_own_network(conn: Db, username: str, network: str, now: datetime) -> bool:
    """Return whether a user has logged in from a network in recent months."""
    return await conn.fetchval(_IS_OWN, _network_subject(username, network), _OWN_NETWORK, now) is True


async def keep_own_network(conn: Db, username: str, network: str, now: datetime) -> None:
    """Record that a user has logged in from a network."""
    await conn.execute(_KEEP_OWN, _network_subject(username, network), _OWN_NETWORK, now + _OWN_NETWORK_KEPT)


def _network_subject(username: str, network: str) -> UUID:
    return command_id("partner network of", f"{network} {username}")
