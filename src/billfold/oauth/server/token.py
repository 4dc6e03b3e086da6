"""The token endpoint: authorization_code, refresh_token and client_credentials."""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from billfold.http.operations import PER_ADDRESS, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.identity.users import store
from billfold.oauth import grants, signing_keys
from billfold.oauth.endpoint import Fields, form_of, required
from billfold.oauth.rules.authorization_params import parse_scopes
from billfold.oauth.rules.public_keys import base64url
from billfold.oauth.server import token_exchange
from billfold.oauth.server.auth_server import TOKEN_PATH, AuthenticatedClient, AuthServer
from billfold.oauth.server.openapi import TOKEN_OPENAPI
from billfold.oauth.server.token_exchange import IssuedTokens
from billfold.oauth.types import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN, OAuthError, TokenSubject
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection

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
    return await token_exchange.redeem_code(
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
    return await token_exchange.refresh(
        conn, authenticated.client, token, scope=form.get("scope"), jkt=authenticated.jkt, now=now
    )


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
