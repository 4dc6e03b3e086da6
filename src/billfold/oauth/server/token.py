"""The token endpoint (authorization_code, refresh_token, client_credentials), and its exchanges."""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from billfold.http.operations import PER_ADDRESS, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.identity.members.store import is_active_member
from billfold.identity.users import store
from billfold.oauth import grants, signing_keys
from billfold.oauth.endpoint import Fields, form_of, required
from billfold.oauth.grants import delete_tokens, insert_token, issue_access_token
from billfold.oauth.rules.authorization_params import parse_scopes, sort_scopes
from billfold.oauth.rules.public_keys import base64url
from billfold.oauth.server.auth_server import TOKEN_PATH, AuthenticatedClient, AuthServer
from billfold.oauth.server.discovery import TOKEN_OPENAPI
from billfold.oauth.types import (
    AUTHORIZATION_CODE,
    CLIENT_CREDENTIALS,
    REFRESH_TOKEN,
    Client,
    OAuthError,
    TokenSubject,
    invalid_grant,
)
from billfold.platform import crypto
from billfold.platform.clock import wall_now
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


ID_TOKEN_LIFETIME = timedelta(minutes=5)
Exchange = Callable[["Connection", AuthenticatedClient, Fields, datetime], Awaitable[IssuedTokens]]


class TokenAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The token response of RFC 6749 and OpenID Connect. `token_type` is DPoP for tokens bound to a key."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: str | None = None
    id_token: str | None = None


@post(TOKEN_PATH, PER_ADDRESS, tag="tokens", status=200, any_query=True, documented=TOKEN_OPENAPI)
async def issue_token(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Issue an access token for 900 seconds."""
    now = wall_now()
    form = form_of(request)
    grant_type = required(form, "grant_type")
    authenticated = await server.prove(request, form, now, must_bind=True)
    exchange = _EXCHANGES.get(grant_type)
    if exchange is None:
        raise OAuthError("unsupported_grant_type", f"grant_type is one of {', '.join(_EXCHANGES)}.")
    if grant_type not in authenticated.client.grant_types:
        raise OAuthError("unauthorized_client", "This client is not registered for the grant.")
    async with server.bank.pool.acquire() as conn:
        tokens = await exchange(conn, authenticated, form, now)
        id_token = await _id_token(server, conn, authenticated, tokens=tokens, now=now)
    answer = TokenAnswer(
        access_token=tokens.access_token,
        token_type="Bearer" if tokens.holder.jkt is None else "DPoP",
        expires_in=int(grants.ACCESS_TOKEN_LIFETIME.total_seconds()),
        scope=" ".join(tokens.holder.scopes),
        refresh_token=tokens.refresh_token,
        id_token=id_token,
    )
    headers = server.nonce_headers(authenticated.client, now)
    return json_response(answer, 200, (b"pragma", b"no-cache"), *headers)


async def _redeem(conn: Connection, authenticated: AuthenticatedClient, form: Fields, now: datetime) -> IssuedTokens:
    return await redeem_code(
        conn,
        authenticated.client,
        required(form, "code"),
        redirect_uri=form.get("redirect_uri"),
        verifier=form.get("code_verifier"),
        jkt=authenticated.jkt,
        now=now,
    )


async def _refresh(conn: Connection, authenticated: AuthenticatedClient, form: Fields, now: datetime) -> IssuedTokens:
    token = required(form, "refresh_token")
    return await refresh(conn, authenticated.client, token, scope=form.get("scope"), jkt=authenticated.jkt, now=now)


async def _client_credentials(
    conn: Connection, authenticated: AuthenticatedClient, form: Fields, now: datetime
) -> IssuedTokens:
    client = authenticated.client
    if client.customer_id is None:
        raise OAuthError("unauthorized_client", "This client has no customer. Use authorization_code.")
    subject = TokenSubject(
        client_id=client.client_id,
        customer_id=client.customer_id,
        scopes=parse_scopes(form.get("scope"), client.scopes),
        jkt=authenticated.jkt,
    )
    access_token = await grants.issue_access_token(conn, subject, now)
    return IssuedTokens(holder=subject, access_token=access_token, refresh_token=None)


async def _id_token(
    server: AuthServer, conn: Connection, authenticated: AuthenticatedClient, tokens: IssuedTokens, now: datetime
) -> str | None:
    """Return an ID token where `openid` was granted: PS256 for fapi2 clients, else RS256."""
    subject = tokens.holder
    if "openid" not in subject.scopes or subject.user_id is None:
        return None
    user = await store.user_claims(
        conn, server.bank.vault, subject.user_id, customer_id=subject.customer_id, scopes=subject.scopes
    )
    id_claims = _id_token_claims(tokens, user, issuer=server.issuer, now=now)
    algorithm = "PS256" if authenticated.client.is_fapi2 else "RS256"
    return signing_keys.sign(await server.signing_keys(now), algorithm, id_claims, now=now)


def _id_token_claims(tokens: IssuedTokens, user: dict[str, Any], *, issuer: str, now: datetime) -> dict[str, Any]:
    """Return the claims of an ID token: who signed in, when, for which client."""
    subject, seconds = tokens.holder, int(now.timestamp())
    claims = {
        **user,
        "iss": issuer,
        "aud": subject.client_id,
        "iat": seconds,
        "exp": seconds + int(ID_TOKEN_LIFETIME.total_seconds()),
        "sid": str(subject.session_id),
        "at_hash": _at_hash(tokens.access_token),
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


_EXCHANGES: dict[str, Exchange] = {
    AUTHORIZATION_CODE: _redeem,
    REFRESH_TOKEN: _refresh,
    CLIENT_CREDENTIALS: _client_credentials,
}
