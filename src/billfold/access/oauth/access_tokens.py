"""Access tokens: 256 random bits for 900 seconds, looked up by their hash on each request."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.access.oauth.types import SERVICE_ROLE, AccessToken, IssuedToken, TokenSubject
from billfold.platform import crypto, ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from billfold.platform.database.pool import Connection, Pool

ACCESS_TOKEN_LIFETIME = timedelta(seconds=900)

_INSERT = """
INSERT INTO access_token (token_hash, client_id, user_id, customer_id, grant_id, family_id, scopes,
                          jkt, auth_time, session_id, issued_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
"""
_FIND = """
SELECT t.client_id, t.user_id, t.customer_id, t.scopes, t.jkt, t.auth_time, t.issued_at,
       t.expires_at, m.role, coalesce(m.member_id, c.member_id) AS member_id, c.profile,
       c.requires_nonce, c.requires_signature
  FROM access_token t JOIN oauth_client c USING (client_id)
  LEFT JOIN membership m ON m.customer_id = t.customer_id AND m.user_id = t.user_id
                        AND m.status = 'ACTIVE'
  LEFT JOIN user_account p ON p.user_id = t.user_id AND p.status = 'ACTIVE'
 WHERE t.token_hash = $1 AND t.expires_at > $2 AND c.revoked_at IS NULL
   AND (t.user_id IS NULL OR (m.role IS NOT NULL AND p.user_id IS NOT NULL))
"""


async def issue_access(
    conn: Connection | Pool,
    *,
    client_id: str,
    customer_id: UUID,
    scopes: Iterable[str],
    now: datetime,
    user_id: UUID | None = None,
    jkt: str | None = None,
    auth_time: datetime | None = None,
) -> str:
    """Return a new access token that no grant stands behind, for a client that is registered."""
    subject = TokenSubject(
        client_id=client_id,
        customer_id=customer_id,
        scopes=tuple(scopes),
        family_id=ids.new(),
        user_id=user_id,
        jkt=jkt,
        auth_time=auth_time,
    )
    return (await issue_access_token(conn, subject, now)).token


async def issue_access_token(conn: Connection | Pool, subject: TokenSubject, now: datetime) -> IssuedToken:
    """Return a new access token for a holder. Only its hash is kept."""
    token, token_hash = crypto.new_token()
    expires_at = now + ACCESS_TOKEN_LIFETIME
    await conn.execute(
        _INSERT,
        token_hash,
        subject.client_id,
        subject.user_id,
        subject.customer_id,
        subject.grant_id,
        subject.family_id,
        list(subject.scopes),
        subject.jkt,
        subject.auth_time,
        subject.session_id,
        now,
        expires_at,
    )
    return IssuedToken(token=token, expires_at=expires_at)


async def find_access_token(conn: Connection | Pool, token: str, now: datetime) -> AccessToken | None:
    """Return what a token stands for at wall time `now`, or None: unknown, expired, revoked."""
    row = await conn.fetchrow(_FIND, crypto.hash_token(token), now)
    if row is None:
        return None
    return AccessToken(
        client_id=row["client_id"],
        user_id=row["user_id"],
        customer_id=row["customer_id"],
        member_id=row["member_id"],
        role=row["role"] or SERVICE_ROLE,
        scopes=frozenset(row["scopes"]),
        jkt=row["jkt"],
        auth_time=row["auth_time"],
        issued_at=row["issued_at"],
        expires_at=row["expires_at"],
        is_fapi2=row["profile"] == "fapi2",
        requires_nonce=row["requires_nonce"],
        requires_signature=row["requires_signature"],
    )


async def delete_tokens(conn: Connection, **owner: object) -> None:
    """Delete the access and refresh tokens whose columns have these values."""
    where = " AND ".join(f"{column} = ${number}" for number, column in enumerate(owner, 1))
    for table in ("access_token", "refresh_token"):
        await conn.execute(f"DELETE FROM {table} WHERE {where}", *owner.values())
