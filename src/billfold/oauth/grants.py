"""Grants of users to clients, and how they end: by the user, the client, or sign-out."""

from collections.abc import Iterable
from dataclasses import astuple
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.identity.members.store import is_active_member
from billfold.oauth.rules.authorization_params import sort_scopes
from billfold.oauth.types import AccessToken, Client, OAuthGrant, TokenSubject
from billfold.platform import crypto
from billfold.platform.database.connection import Connection, Db

ACCESS_TOKEN_LIFETIME = timedelta(seconds=900)
USE_RECORDED_EVERY = timedelta(minutes=1)
"""Resolution of the recorded last use of a grant."""

_INSERT = """
INSERT INTO {table} (token_hash, issued_at, expires_at, client_id, customer_id, scopes, family_id,
                     user_id, grant_id, jkt, auth_time, session_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
"""
_FIND = """
SELECT t.client_id, t.user_id, t.customer_id, t.scopes, t.jkt, t.auth_time, t.issued_at,
       t.expires_at, CASE WHEN k.account_status = 'CLOSED' THEN 'VIEWER' ELSE coalesce(m.role, 'SERVICE') END AS role,
       coalesce(m.member_id, c.member_id) AS member_id,
       c.profile = 'fapi2' AS is_fapi2, c.requires_nonce, c.requires_signature, k.role AS organization,
       t.grant_id, g.last_used_at AS grant_used_at
  FROM access_token t JOIN oauth_client c USING (client_id)
  JOIN customer k ON k.customer_id = t.customer_id
  LEFT JOIN oauth_grant g ON g.grant_id = t.grant_id
  LEFT JOIN membership m ON m.customer_id = t.customer_id AND m.user_id = t.user_id
                        AND m.status = 'ACTIVE'
  LEFT JOIN user_account p ON p.user_id = t.user_id AND p.status = 'ACTIVE'
 WHERE t.token_hash = $1 AND t.expires_at > $2 AND c.revoked_at IS NULL
   AND (k.account_status <> 'CLOSED' OR t.user_id IS NOT NULL)
   AND (t.user_id IS NULL OR (m.role IS NOT NULL AND p.user_id IS NOT NULL))
"""
_USED = """
UPDATE oauth_grant SET last_used_at = $2 WHERE grant_id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)
"""


async def issue_access(conn: Db, *, scopes: Iterable[str], now: datetime, **subject: Any) -> str:
    """Return a new access token without a grant; `subject` are fields of `TokenSubject`."""
    return await issue_access_token(conn, TokenSubject(scopes=tuple(scopes), **subject), now)


async def issue_access_token(conn: Db, subject: TokenSubject, now: datetime) -> str:
    """Return a new access token for a holder. Only its hash is kept."""
    return await insert_token(conn, "access_token", subject, now=now, expires_at=now + ACCESS_TOKEN_LIFETIME)


async def insert_token(
    conn: Db,
    table: Literal["access_token", "refresh_token"],
    subject: TokenSubject,
    *,
    now: datetime,
    expires_at: datetime,
) -> str:
    """Return a new token. Only its hash is kept."""
    token, token_hash = crypto.new_token()
    await conn.execute(_INSERT.format(table=table), token_hash, now, expires_at, *astuple(subject))
    return token


async def find_access_token(conn: Db, token: str, now: datetime) -> AccessToken | None:
    """Return the subject of a token at wall time `now`, or None: unknown, expired, revoked."""
    row = await conn.fetchrow(_FIND, crypto.hash_token(token), now)
    return None if row is None else msgspec.convert(dict(row), AccessToken)


async def record_use(conn: Db, token: AccessToken, now: datetime) -> None:
    """Record that the grant of a token is in use, at most once a minute."""
    before = now - USE_RECORDED_EVERY
    if token.grant_id is not None and (token.grant_used_at is None or token.grant_used_at <= before):
        await conn.execute(_USED, token.grant_id, now, before)


async def delete_tokens(conn: Connection, **owner: object) -> None:
    """Delete the access and refresh tokens whose columns have these values."""
    where = " AND ".join(f"{column} = ${number}" for number, column in enumerate(owner, 1))
    for table in ("access_token", "refresh_token"):
        await conn.execute(f"DELETE FROM {table} WHERE {where}", *owner.values())


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
    """The information that a client may get about its own token (RFC 7662)."""

    is_access: bool
    client_id: str
    user_id: UUID | None
    customer_id: UUID
    scopes: tuple[str, ...]
    jkt: str | None
    issued_at: datetime
    expires_at: datetime


async def list_grants(conn: Db, user_id: UUID) -> list[OAuthGrant]:
    """Return the grants of a user, newest first."""
    return [
        msgspec.convert({**row, "scopes": sort_scopes(row["scopes"])}, OAuthGrant)
        for row in await conn.fetch(_GRANTS, user_id)
    ]


async def revoke_grant(conn: Connection, *, user_id: UUID, grant_id: UUID, now: datetime) -> bool:
    """Revoke a grant of a user with all its tokens; return whether there was one."""
    async with conn.transaction():
        if not await conn.fetchval(_REVOKE, grant_id, user_id, now):
            return False
        await delete_tokens(conn, grant_id=grant_id)
    return True


async def revoke_session_tokens(conn: Db, session_id: UUID) -> None:
    """End the access tokens of a session when its user signs out.

    Refresh tokens stay: the user consented to offline access.
    """
    await conn.execute("DELETE FROM access_token WHERE session_id = $1", session_id)


async def revoke_user_tokens(conn: Connection, user_id: UUID) -> None:
    """Delete every token and code of a user who left, or whose password may be compromised.

    The grants stay; their clients have to request authorization again.
    """
    async with conn.transaction():
        # Tokens that are being issued at this moment are deleted too.
        await conn.execute(_LOCK_OF_USER, user_id)
        await conn.execute("DELETE FROM authorization_code WHERE user_id = $1 AND used_at IS NULL", user_id)
        await delete_tokens(conn, user_id=user_id)


async def revoke_member_grants(conn: Connection, customer_id: UUID, user_id: UUID, *, now: datetime) -> None:
    """Revoke the grants of a user for one customer, with every token; those for others stay."""
    async with conn.transaction():
        await conn.execute(_REVOKE_MEMBER, customer_id, user_id, now)
        await delete_tokens(conn, customer_id=customer_id, user_id=user_id)


async def revoke_token(conn: Connection, client: Client, token: str) -> None:
    """Revoke a token of this client; with a refresh token everything issued from it (RFC 7009).

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


async def introspect(conn: Db, client: Client, token: str, now: datetime) -> TokenIntrospection | None:
    """Return the subject of a token of this client, or None: unknown, another client's, or expired."""
    row = await conn.fetchrow(_INTROSPECT, crypto.hash_token(token), client.client_id, now)
    if row is None:
        return None
    introspection = TokenIntrospection(*row)._replace(scopes=sort_scopes(row["scopes"]))
    if introspection.user_id is not None and not await is_active_member(
        conn, introspection.customer_id, introspection.user_id
    ):
        return None
    return introspection
