"""Links that are mailed: each opens the page on which a password is set, once. Wall time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.access.users import rules
from billfold.access.users.store import find_user
from billfold.access.users.types import LinkPurpose, User
from billfold.platform import crypto

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection, Pool

_LASTS = {"welcome": rules.WELCOME_LINK_LIFETIME, "reset": rules.RESET_LINK_LIFETIME}
_OPENS = "link_hash = $1 AND used_at IS NULL AND expires_at > $2"
_FIND = f"SELECT user_id FROM email_link WHERE {_OPENS}"
_USE = f"UPDATE email_link SET used_at = $2 WHERE {_OPENS} RETURNING user_id, purpose"
_RECENT = """
SELECT 1 FROM email_link WHERE user_id = $1 AND purpose = $2 AND created_at > $3 LIMIT 1
"""


async def create_link(conn: Connection, user_id: UUID, purpose: LinkPurpose, *, now: datetime) -> str:
    """Return the secret of a new link. The earlier ones of the same purpose are void."""
    secret, link_hash = crypto.new_token()
    async with conn.transaction():
        await conn.execute("DELETE FROM email_link WHERE user_id = $1 AND purpose = $2", user_id, purpose)
        await conn.execute(
            "INSERT INTO email_link (link_hash, user_id, purpose, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
            link_hash,
            user_id,
            purpose,
            now,
            now + _LASTS[purpose],
        )
    return secret


async def create_reset_link(conn: Connection, user_id: UUID, *, now: datetime) -> str | None:
    """Return the secret of a new link to a new password, or None when the user got one within the last minute.

    Of many requests at once one is given it.
    """
    async with conn.transaction():
        await conn.execute("SELECT 1 FROM user_account WHERE user_id = $1 FOR NO KEY UPDATE", user_id)
        if await conn.fetchval(_RECENT, user_id, "reset", now - rules.LINK_RESEND_INTERVAL):
            return None
        return await create_link(conn, user_id, "reset", now=now)


async def find_link_user(conn: Connection | Pool, vault: Vault, secret: str, *, now: datetime) -> User | None:
    """Return the user of a valid link without using it up."""
    user_id = await conn.fetchval(_FIND, crypto.hash_token(secret), now)
    return None if user_id is None else await find_user(conn, vault, user_id)


async def consume_link(conn: Connection | Pool, secret: str, now: datetime) -> LinkPurpose | None:
    """Use a link up and return what it was for, or None. The address is verified by that."""
    row = await conn.fetchrow(_USE, crypto.hash_token(secret), now)
    if row is None:
        return None
    await conn.execute(
        "UPDATE user_account SET email_verified_at = coalesce(email_verified_at, $2) WHERE user_id = $1",
        row["user_id"],
        now,
    )
    purpose: LinkPurpose = row["purpose"]
    return purpose
