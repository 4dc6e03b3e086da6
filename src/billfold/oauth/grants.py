"""Grants of users to clients, and how they end: by the user, the client, or sign-out."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from billfold.oauth.access_tokens import delete_tokens
from billfold.oauth.rules.scopes import sort_scopes
from billfold.oauth.types import OAuthGrant
from billfold.identity.users.members import is_active_member
from billfold.platform import crypto

if TYPE_CHECKING:
    from billfold.oauth.types import Client
    from billfold.platform.database.connection import (Connection, Pool)

_GRANTS = """
SELECT g.grant_id, g.client_id, c.name AS client_name, g.customer_id, k.name AS customer_name, g.scopes,
       g.created_at AS granted_at, g.last_used_at
  FROM oauth_grant g JOIN oauth_client c USING (client_id)
  JOIN customer k ON k.customer_id = g.customer_id
 WHERE g.user_id = $1 AND g.revoked_at IS NULL AND c.revoked_at IS NULL
 ORDER BY g.created_at DESC, g.grant_id
"""
_REVOKE = """
UPDATE oauth_grant SET revoked_at = $3
 WHERE grant_id = $1 AND user_id = $2 AND revoked_at IS NULL RETURNING true
"""
_REVOKE_MEMBER = """
UPDATE oauth_grant SET revoked_at = $3
 WHERE customer_id = $1 AND user_id = $2 AND revoked_at IS NULL
"""
_LOCK_OF_USER = "SELECT 1 FROM oauth_grant WHERE user_id = $1 ORDER BY grant_id FOR NO KEY UPDATE"
_INTROSPECT = """
SELECT true AS is_access, client_id, user_id, customer_id, scopes, jkt, issued_at, expires_at
  FROM access_token WHERE token_hash = $1 AND client_id = $2 AND expires_at > $3
UNION ALL
SELECT false, client_id, user_id, customer_id, scopes, jkt, issued_at, expires_at
  FROM refresh_token
 WHERE token_hash = $1 AND client_id = $2 AND expires_at > $3 AND used_at IS NULL
"""


class TokenIntrospection(NamedTuple):
    """What a client may learn of its own token (RFC 7662)."""

    is_access: bool
    client_id: str
    user_id: UUID | None
    customer_id: UUID
    scopes: tuple[str, ...]
    jkt: str | None
    issued_at: datetime
    expires_at: datetime


async def list_grants(conn: Connection | Pool, user_id: UUID) -> list[OAuthGrant]:
    """Return the grants of a user, newest first."""
    return [
        msgspec.convert({**row, "scopes": sort_scopes(row["scopes"])}, OAuthGrant)
        for row in await conn.fetch(_GRANTS, user_id)
    ]


async def revoke_grant(conn: Connection, *, user_id: UUID, grant_id: UUID, now: datetime) -> bool:
    """Revoke a grant of a user with every token of it; return whether there was one."""
    async with conn.transaction():
        if not await conn.fetchval(_REVOKE, grant_id, user_id, now):
            return False
        await delete_tokens(conn, grant_id=grant_id)
    return True


async def revoke_session_tokens(conn: Connection | Pool, session_id: UUID) -> None:
    """End the access tokens of a session when its user signs out.

    Refresh tokens stay: the user consented to offline access.
    """
    await conn.execute("DELETE FROM access_token WHERE session_id = $1", session_id)


async def revoke_user_tokens(conn: Connection, user_id: UUID) -> None:
    """Delete every token and code of a user who left, or whose password may be known.

    The grants stay; their clients have to request authorization again.
    """
    async with conn.transaction():
        # What is being issued at this moment is deleted too.
        await conn.execute(_LOCK_OF_USER, user_id)
        await conn.execute("DELETE FROM authorization_code WHERE user_id = $1 AND used_at IS NULL", user_id)
        await delete_tokens(conn, user_id=user_id)


async def revoke_member_grants(conn: Connection, customer_id: UUID, user_id: UUID, *, now: datetime) -> None:
    """Revoke the grants of a user for one customer, with every token; those for others stay."""
    async with conn.transaction():
        await conn.execute(_REVOKE_MEMBER, customer_id, user_id, now)
        await delete_tokens(conn, customer_id=customer_id, user_id=user_id)


async def revoke_token(conn: Connection, client: Client, token: str) -> None:
    """Revoke a token of this client; with a refresh token all that was issued from it (RFC 7009).

    Any other text changes nothing and reveals nothing.
    """
    token_hash = crypto.hash_token(token)
    async with conn.transaction():
        await conn.execute(
            "DELETE FROM access_token WHERE token_hash = $1 AND client_id = $2", token_hash, client.client_id
        )
        row = await conn.fetchrow(
            "SELECT family_id, grant_id FROM refresh_token WHERE token_hash = $1 AND client_id = $2",
            token_hash,
            client.client_id,
        )
        if row is not None:
            await conn.execute("SELECT 1 FROM oauth_grant WHERE grant_id = $1 FOR NO KEY UPDATE", row["grant_id"])
            family = row["family_id"]
            await delete_tokens(conn, family_id=family)


async def introspect(conn: Connection | Pool, client: Client, token: str, now: datetime) -> TokenIntrospection | None:
    """Return what a token of this client stands for, or None: unknown, another client's, or expired."""
    row = await conn.fetchrow(_INTROSPECT, crypto.hash_token(token), client.client_id, now)
    if row is None:
        return None
    introspection = TokenIntrospection(*row)._replace(scopes=sort_scopes(row["scopes"]))
    if introspection.user_id is not None and not await is_active_member(
        conn, introspection.customer_id, introspection.user_id
    ):
        return None
    return introspection
