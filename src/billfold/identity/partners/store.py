"""Looks up partners, users, keys and tokens. One indexed query each."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.identity.partners import rules
from billfold.identity.partners.rules import PartnerRow
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Connection, Db

_PARTNER = """p.partner_id, p.slug, p.name, p.own_customer_id, p.features, p.rate_per_minute,
       p.money_per_minute, p.allowed_networks::text[]"""
_FIND_PARTNER = f"SELECT {_PARTNER} FROM partner p WHERE p.slug = $1"
_FIRST_PARTNER = "SELECT partner_id FROM partner ORDER BY created_at, partner_id LIMIT 1"
_LIST_PARTNERS = f"SELECT {_PARTNER} FROM partner p ORDER BY p.slug"
_CREDENTIAL = f"""
SELECT {_PARTNER}, t.user_id, t.expires_at,
       array(SELECT s.secret_no FROM partner_secret s
              WHERE s.partner_id = p.partner_id AND (s.expires_at IS NULL OR s.expires_at > $2)
              ORDER BY s.secret_no) AS numbers,
       array(SELECT s.sealed FROM partner_secret s
              WHERE s.partner_id = p.partner_id AND (s.expires_at IS NULL OR s.expires_at > $2)
              ORDER BY s.secret_no) AS sealed
  FROM partner_token t JOIN partner p USING (partner_id) JOIN partner_user u USING (user_id)
 WHERE t.token_hash = $1 AND t.expires_at > $2 AND u.disabled_at IS NULL
"""
_USER = """
SELECT u.user_id, u.partner_id, p.slug, p.own_customer_id, u.username, u.password_hash
  FROM partner_user u JOIN partner p USING (partner_id) WHERE u.username = $1 AND u.disabled_at IS NULL
"""
_KEY = """
SELECT k.key_id, k.algorithm, k.public_pem, u.user_id, u.partner_id, p.slug, p.own_customer_id, u.username
  FROM partner_key k JOIN partner_user u USING (user_id) JOIN partner p USING (partner_id)
 WHERE k.key_id = $1 AND k.revoked_at IS NULL AND u.disabled_at IS NULL
"""
_KEYS = """
SELECT k.key_id, u.username, k.algorithm, k.created_at, k.revoked_at
  FROM partner_key k JOIN partner_user u USING (user_id) WHERE u.partner_id = $1 ORDER BY k.created_at, k.key_id
"""


_USERS = "SELECT username FROM partner_user WHERE partner_id = $1 AND disabled_at IS NULL ORDER BY username"
_SECRETS = """
SELECT secret_no, created_at, expires_at FROM partner_secret
 WHERE partner_id = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY secret_no DESC
"""


async def find_partner(conn: Db, slug: str) -> PartnerRow | None:
    """Return the partner of a slug, or None."""
    row = await conn.fetchrow(_FIND_PARTNER, slug)
    return None if row is None else _partner(row)


async def get_first_partner_id(conn: Db) -> UUID | None:
    """Return the bank's first partner, in a sandbox the partner created with it; None before there is one."""
    first: UUID | None = await conn.fetchval(_FIRST_PARTNER)
    return first


async def list_partners(conn: Db) -> list[PartnerRow]:
    """Return every partner in the order of their slugs: a bank has few."""
    return [_partner(row) for row in await conn.fetch(_LIST_PARTNERS)]


async def find_credential(conn: Db, vault: Vault, token_hash: bytes, now: datetime) -> rules.Credential | None:
    """Return the subject of a token at wall time `now`, or None: unknown, expired, revoked."""
    row = await conn.fetchrow(_CREDENTIAL, token_hash, now)
    if row is None:
        return None
    return rules.Credential(
        partner=_partner(row),
        user_id=row["user_id"],
        expires_at=row["expires_at"],
        shared_secrets=tuple(
            vault.open(sealed, secret_context(row["partner_id"], number))
            for number, sealed in zip(row["numbers"], row["sealed"], strict=True)
        ),
    )


async def find_partner_user(conn: Db, username: str) -> rules.PartnerUser | None:
    """Return the user of that name, or None if no such user may log in."""
    row = await conn.fetchrow(_USER, username)
    return None if row is None else rules.PartnerUser(*row)


async def find_partner_key(conn: Db, key_id: str) -> rules.PartnerKey | None:
    """Return the valid key with that id, or None."""
    row = await conn.fetchrow(_KEY, key_id)
    return None if row is None else rules.PartnerKey(*row)


async def list_partner_keys(conn: Db, partner_id: UUID) -> list[rules.RegisteredKey]:
    """Return the keys of a partner's users, oldest first, revoked ones too."""
    return [rules.RegisteredKey(*row) for row in await conn.fetch(_KEYS, partner_id)]


async def lock_newest_secret(conn: Connection, partner_id: UUID) -> int:
    """Return the number of the newest signing secret; locks out additions until the transaction ends."""
    await conn.execute("SELECT 1 FROM partner WHERE partner_id = $1 FOR UPDATE", partner_id)
    newest: int = await conn.fetchval("SELECT max(secret_no) FROM partner_secret WHERE partner_id = $1", partner_id)
    return newest


async def list_partner_users(conn: Db, partner_id: UUID) -> list[str]:
    """Return the names of the users who may log in for a partner."""
    return [row["username"] for row in await conn.fetch(_USERS, partner_id)]


async def list_secrets(conn: Db, partner_id: UUID, now: datetime) -> list[rules.SigningSecret]:
    """Return the valid signing secrets at wall time `now`, without the secret values, the newest first."""
    return [rules.SigningSecret(*row) for row in await conn.fetch(_SECRETS, partner_id, now)]


def secret_context(partner_id: UUID, secret_no: int) -> bytes:
    """Return the only place where a partner's signing secret opens."""
    return associated_data("partner_secret", "sealed", secret_no, tenant_id=partner_id)


def _partner(row: Any) -> PartnerRow:  # noqa: ANN401 - a record of asyncpg
    return msgspec.convert(dict(row), PartnerRow)
