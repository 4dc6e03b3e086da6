"""The claims about a user that a client gets by scope: in ID tokens and as userinfo."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.access.oauth.rules.public_keys import base64url

if TYPE_CHECKING:
    from billfold.access.oauth.token_exchange import IssuedTokens
    from billfold.platform.database.pool import Connection, Pool

ID_TOKEN_LIFETIME = timedelta(minutes=5)
_PERSON = """
SELECT p.user_id, p.first_name, p.last_name, p.email, p.email_verified_at, p.phone_number,
       p.phone_verified_at, m.member_id, m.customer_id, k.partner_id
  FROM user_account p JOIN membership m USING (user_id) JOIN customer k USING (customer_id)
 WHERE p.user_id = $1 AND m.customer_id = $2
"""


async def user_claims(
    conn: Connection | Pool, user_id: UUID, customer_id: UUID, scopes: Collection[str]
) -> dict[str, Any]:
    """Return `sub` and what the scopes `profile`, `email` and `phone` let a client know."""
    row = await conn.fetchrow(_PERSON, user_id, customer_id)
    user_info: dict[str, Any] = {"sub": str(user_id)}
    if row is None:
        return user_info
    if "profile" in scopes:
        user_info |= {
            "name": f"{row['first_name']} {row['last_name']}",
            "given_name": row["first_name"],
            "family_name": row["last_name"],
            "member_id": str(row["member_id"]),
            "customer_id": str(row["customer_id"]),
            "partner_id": None if row["partner_id"] is None else str(row["partner_id"]),
        }
    if "email" in scopes:
        user_info |= {"email": row["email"], "email_verified": row["email_verified_at"] is not None}
    if "phone" in scopes and row["phone_number"] is not None:
        user_info |= {
            "phone_number": row["phone_number"],
            "phone_number_verified": row["phone_verified_at"] is not None,
        }
    return user_info


def id_token_claims(tokens: IssuedTokens, user: dict[str, Any], *, issuer: str, now: datetime) -> dict[str, Any]:
    """Return the claims of an ID token: who signed in, when, for which client."""
    subject, seconds = tokens.holder, int(now.timestamp())
    claims = {
        **user,
        "iss": issuer,
        "aud": subject.client_id,
        "iat": seconds,
        "exp": seconds + int(ID_TOKEN_LIFETIME.total_seconds()),
        "sid": str(subject.session_id),
        "at_hash": _at_hash(tokens.access.token),
    }
    if subject.auth_time is not None:
        claims["auth_time"] = int(subject.auth_time.timestamp())
    if tokens.nonce is not None:
        claims["nonce"] = tokens.nonce
    return claims


def _at_hash(token: str) -> str:
    """Return the left half of the hash of an access token (OpenID Connect Core 3.1.3.6)."""
    digest = hashlib.sha256(token.encode()).digest()
    return base64url(digest[: len(digest) // 2])
