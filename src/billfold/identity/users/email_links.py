"""E-mailed links: each opens the page on which a password is set, once. Wall time."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from billfold.identity.users import rules
from billfold.identity.users.rules import LinkPurpose, User
from billfold.identity.users.store import find_user
from billfold.platform import crypto
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.errors import Refused

_LASTS = {"welcome": rules.WELCOME_LINK_LIFETIME, "reset": rules.RESET_LINK_LIFETIME}
_OPENS = "link_hash = $1 AND used_at IS NULL AND expires_at > $2"
_FIND = f"SELECT user_id FROM email_link WHERE {_OPENS}"
_USE = f"UPDATE email_link SET used_at = $2 WHERE {_OPENS} RETURNING purpose"
_VOID = "UPDATE email_link SET used_at = $2 WHERE user_id = $1 AND used_at IS NULL"
_LOCK = "SELECT 1 FROM user_account WHERE user_id = $1 FOR NO KEY UPDATE"
_RECENT = """
SELECT 1 FROM email_link WHERE user_id = $1 AND purpose = $2 AND created_at > $3 LIMIT 1
"""


async def create_link(conn: Connection, user_id: UUID, purpose: LinkPurpose, *, now: datetime) -> str:
    """Return the secret of a new link. Earlier ones stay valid until one is used."""
    secret, link_hash = crypto.new_token()
    await conn.execute(
        "INSERT INTO email_link (link_hash, user_id, purpose, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
        link_hash,
        user_id,
        purpose,
        now,
        now + _LASTS[purpose],
    )
    return secret


async def create_reset_link(conn: Connection, user_id: UUID, *, limits: Mapping[str, int], now: datetime) -> str | None:
    """Return the secret of a new password link, or None if the user got one within the last minute.

    The same applies when the daily limit is reached. Of several concurrent requests only one gets it.
    """
    async with conn.transaction():
        await conn.execute(_LOCK, user_id)
        if await conn.fetchval(_RECENT, user_id, "reset", now - rules.LINK_RESEND_INTERVAL):
            return None
        try:
            await count_usage(conn, limits, {("password_resets.recipient", user_id): 1}, now)
        except Refused:
            return None
        return await create_link(conn, user_id, "reset", now=now)


async def find_link_user(conn: Db, vault: Vault, secret: str, *, now: datetime) -> User | None:
    """Return the user of a valid link without using it up."""
    user_id = await conn.fetchval(_FIND, crypto.hash_token(secret), now)
    return None if user_id is None else await find_user(conn, vault, user_id)


async def consume_link(conn: Connection, secret: str, now: datetime) -> LinkPurpose | None:
    """Use a link up and return its purpose, or None. This verifies the address and invalidates all other links."""
    link_hash = crypto.hash_token(secret)
    user_id = await conn.fetchval(_FIND, link_hash, now)
    if user_id is None:
        return None
    async with conn.transaction():
        await conn.execute(_LOCK, user_id)  # if two links are used at once, one sets the password
        purpose: LinkPurpose | None = await conn.fetchval(_USE, link_hash, now)
        if purpose is None:
            return None
        await conn.execute(_VOID, user_id, now)
        await conn.execute(
            "UPDATE user_account SET email_verified_at = coalesce(email_verified_at, $2) WHERE user_id = $1",
            user_id,
            now,
        )
    return purpose
