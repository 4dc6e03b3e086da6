"""Exchanges codes and refresh tokens for access tokens: each code has one winner.

Every operation that issues or revokes tokens of a grant locks the grant's row, so that nothing is
issued concurrently with a revocation.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from billfold.identity.members.store import is_active_member
from billfold.oauth.grants import delete_tokens, insert_token, issue_access_token
from billfold.oauth.rules.authorization_params import parse_scopes, sort_scopes
from billfold.oauth.rules.public_keys import base64url
from billfold.oauth.types import REFRESH_TOKEN, Client, TokenSubject, invalid_grant
from billfold.platform import crypto
from billfold.platform.database.connection import Connection

REFRESH_TOKEN_LIFETIME = timedelta(days=90)
"""From consent on; using a refresh token does not extend it."""
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_CODE = "SELECT * FROM authorization_code WHERE code_hash = $1"
_USE_CODE = """
UPDATE authorization_code SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL RETURNING true
"""
_REFRESH = "SELECT * FROM refresh_token WHERE token_hash = $1"
_USE_REFRESH = """
UPDATE refresh_token SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL RETURNING true
"""
_LOCK_GRANT = "SELECT revoked_at FROM oauth_grant WHERE grant_id = $1 FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTokens:
    """The tokens issued for a code or a refresh token. The ID token repeats `nonce`."""

    holder: TokenSubject
    access_token: str
    refresh_token: str | None
    nonce: str | None = None


async def redeem_code(
    conn: Connection,
    client: Client,
    code: str,
    *,
    redirect_uri: str | None,
    verifier: str | None,
    jkt: str | None,
    now: datetime,
) -> IssuedTokens:
    """Exchange a code. Raises OAuthError `invalid_grant`, having changed nothing,

    unless the code was used before: then all tokens that were issued from it are revoked.
    """
    async with conn.transaction():
        row = await conn.fetchrow(_CODE, crypto.hash_token(code))
        if row is None or row["client_id"] != client.client_id:
            raise invalid_grant("The code is unknown.")
        await _lock_grant(conn, row)
        if row["used_at"] is None:
            _check_code(row, redirect_uri=redirect_uri, verifier=verifier, jkt=jkt, now=now)
            if await conn.fetchval(_USE_CODE, row["code_hash"], now):
                return await _issue_first_tokens(conn, client, row, jkt=jkt, now=now)
        await delete_tokens(conn, family_id=row["family_id"])
    raise invalid_grant("The code was used before; tokens issued from it are revoked.")


async def refresh(
    conn: Connection, client: Client, token: str, *, scope: str | None, jkt: str | None, now: datetime
) -> IssuedTokens:
    """Exchange a refresh token. Raises OAuthError `invalid_grant`, `invalid_scope`.

    A token bound to a key is returned unchanged. A bearer token is replaced; if it is used again, its
    whole family is revoked.
    """
    async with conn.transaction():
        row = await conn.fetchrow(_REFRESH, crypto.hash_token(token))
        if row is None or row["client_id"] != client.client_id or row["expires_at"] <= now:
            raise invalid_grant("The refresh token is unknown or has expired.")
        await _lock_grant(conn, row)
        if row["jkt"] not in {None, jkt}:
            raise invalid_grant("The refresh token belongs to another key.")
        scopes = parse_scopes(scope, set(row["scopes"]) & set(client.scopes))
        subject = _subject(row, jkt)
        holder = replace(subject, scopes=scopes)
        if row["jkt"] is not None:
            is_valid = await conn.fetchval("SELECT true FROM refresh_token WHERE token_hash = $1", row["token_hash"])
            if not is_valid:
                raise invalid_grant("The refresh token was revoked.")
            return IssuedTokens(
                holder=holder, access_token=await issue_access_token(conn, holder, now), refresh_token=token
            )
        if await conn.fetchval(_USE_REFRESH, row["token_hash"], now):
            refresh_token_value = await insert_token(
                conn, "refresh_token", subject, now=now, expires_at=row["expires_at"]
            )
            access_token = await issue_access_token(conn, holder, now)
            return IssuedTokens(holder=holder, access_token=access_token, refresh_token=refresh_token_value)
        await delete_tokens(conn, family_id=row["family_id"])
    raise invalid_grant("The refresh token was used before; tokens issued from it are revoked.")


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636)."""
    return base64url(hashlib.sha256(verifier.encode()).digest())


def _check_code(
    row: Any,  # noqa: ANN401 - a record of asyncpg
    *,
    redirect_uri: str | None,
    verifier: str | None,
    jkt: str | None,
    now: datetime,
) -> None:
    if row["expires_at"] <= now:
        raise invalid_grant("The code has expired.")
    if redirect_uri != row["redirect_uri"]:
        raise invalid_grant("redirect_uri is not the one the code was sent to.")
    if verifier is None or not _VERIFIER.fullmatch(verifier):
        raise invalid_grant("code_verifier is missing or malformed.")
    if not hmac.compare_digest(challenge_of(verifier), row["code_challenge"]):
        raise invalid_grant("code_verifier does not fit the code_challenge.")
    if row["jkt"] is not None and row["jkt"] != jkt:
        raise invalid_grant("The code is bound to a key other than the one that was proven.")


async def _issue_first_tokens(
    conn: Connection,
    client: Client,
    row: Any,  # noqa: ANN401 - as above
    jkt: str | None,
    now: datetime,
) -> IssuedTokens:
    holder = _subject(row, jkt)
    refresh_token_value = None
    if REFRESH_TOKEN in client.grant_types:
        expires_at = now + REFRESH_TOKEN_LIFETIME
        refresh_token_value = await insert_token(conn, "refresh_token", holder, now=now, expires_at=expires_at)
    access_token = await issue_access_token(conn, holder, now)
    return IssuedTokens(holder=holder, access_token=access_token, refresh_token=refresh_token_value, nonce=row["nonce"])


async def _lock_grant(conn: Connection, row: Any) -> None:  # noqa: ANN401 - as above
    """Lock the grant. Raises OAuthError if it, or the membership behind it, has ended."""
    grant = await conn.fetchrow(_LOCK_GRANT, row["grant_id"])
    member = await is_active_member(conn, row["customer_id"], row["user_id"])
    if grant is None or grant["revoked_at"] is not None or not member:
        raise invalid_grant("The grant has ended.")


def _subject(row: Any, jkt: str | None) -> TokenSubject:  # noqa: ANN401 - as above
    return msgspec.convert({**row, "scopes": sort_scopes(row["scopes"]), "jkt": jkt}, TokenSubject)
