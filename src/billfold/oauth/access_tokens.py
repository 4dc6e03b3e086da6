"""Access tokens: 256 random bits for 900 seconds, looked up by their hash on each request."""

from __future__ import annotations

from dataclasses import astuple
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from billfold.oauth.types import AccessToken, TokenSubject
from billfold.platform import crypto

if TYPE_CHECKING:
    from collections.abc import Iterable

    from billfold.platform.database.connection import (Connection, Pool)

ACCESS_TOKEN_LIFETIME = timedelta(seconds=900)
USE_RECORDED_EVERY = timedelta(minutes=1)
"""How exact the last use of a grant is."""

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


async def issue_access(conn: Connection | Pool, *, scopes: Iterable[str], now: datetime, **subject: Any) -> str:
    """Return a new access token that no grant stands behind; `subject` are fields of `TokenSubject`."""
    return await issue_access_token(conn, TokenSubject(scopes=tuple(scopes), **subject), now)


async def issue_access_token(conn: Connection | Pool, subject: TokenSubject, now: datetime) -> str:
    """Return a new access token for a holder. Only its hash is kept."""
    return await insert_token(conn, "access_token", subject, now=now, expires_at=now + ACCESS_TOKEN_LIFETIME)


async def insert_token(
    conn: Connection | Pool,
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


async def find_access_token(conn: Connection | Pool, token: str, now: datetime) -> AccessToken | None:
    """Return what a token stands for at wall time `now`, or None: unknown, expired, revoked."""
    row = await conn.fetchrow(_FIND, crypto.hash_token(token), now)
    return None if row is None else msgspec.convert(dict(row), AccessToken)


async def record_use(conn: Connection | Pool, token: AccessToken, now: datetime) -> None:
    """Record that the grant of a token is in use, at most once a minute."""
    before = now - USE_RECORDED_EVERY
    if token.grant_id is not None and (token.grant_used_at is None or token.grant_used_at <= before):
        await conn.execute(_USED, token.grant_id, now, before)


async def delete_tokens(conn: Connection, **owner: object) -> None:
    """Delete the access and refresh tokens whose columns have these values."""
    where = " AND ".join(f"{column} = ${number}" for number, column in enumerate(owner, 1))
    for table in ("access_token", "refresh_token"):
        await conn.execute(f"DELETE FROM {table} WHERE {where}", *owner.values())
