"""Introspection (RFC 7662) and revocation (RFC 7009) of a client's own tokens."""

from typing import Any

from billfold.http.operations import PER_ADDRESS, get, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import TEXT, HttpResponse
from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.identity.users import store
from billfold.oauth import grants
from billfold.oauth.caller import challenge, insufficient_scope
from billfold.oauth.endpoint import form_of, required
from billfold.oauth.grants import TokenIntrospection
from billfold.oauth.server.auth_server import AuthServer
from billfold.oauth.server.discovery import INTROSPECT_OPENAPI, REVOKE_OPENAPI
from billfold.platform.clock import wall_now


@post("/api/oauth2/introspect", PER_ADDRESS, tag="tokens", status=200, any_query=True, documented=INTROSPECT_OPENAPI)
async def introspect_token(request: RawRequest, server: AuthServer) -> dict[str, Any]:
    """Introspect a token of the client (RFC 7662). Any other text is not active."""
    now = wall_now()
    form = form_of(request)
    authenticated = await server.prove(request, form, now)
    introspection = await grants.introspect(server.bank.pool, authenticated.client, required(form, "token"), now=now)
    return {"active": False} if introspection is None else _introspection_body(server.issuer, introspection)


@post("/api/oauth2/revoke", PER_ADDRESS, tag="tokens", status=200, any_query=True, documented=REVOKE_OPENAPI)
async def revoke_token(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Revoke a token of the client; with a refresh token everything that was issued from it.

    A text that is not a token of the client gets the same answer, and changes nothing.
    """
    now = wall_now()
    form = form_of(request)
    authenticated = await server.prove(request, form, now)
    async with server.bank.pool.acquire() as conn:
        await grants.revoke_token(conn, authenticated.client, required(form, "token"))
    return HttpResponse(200, TEXT)


def _introspection_body(issuer: str, introspection: TokenIntrospection) -> dict[str, Any]:
    subject = introspection.client_id if introspection.user_id is None else str(introspection.user_id)
    body: dict[str, Any] = {
        "active": True,
        "iss": issuer,
        "client_id": introspection.client_id,
        "sub": subject,
        "customer_id": str(introspection.customer_id),
        "scope": " ".join(introspection.scopes),
        "iat": int(introspection.issued_at.timestamp()),
        "exp": int(introspection.expires_at.timestamp()),
    }
    if introspection.is_access:
        body["token_type"] = "Bearer" if introspection.jkt is None else "DPoP"
    if introspection.jkt is not None:
        body["cnf"] = {"jkt": introspection.jkt}
    return body


PATH = "/api/v1/user"


@get(PATH, PER_ADDRESS, tag="people", any_query=True, refuses=("unauthorized", "invalid-dpop-proof", "forbidden"))
async def show_userinfo(request: RawRequest, server: AuthServer) -> dict[str, Any]:
    """Return the claims of the user, as far as `profile`, `email` and `phone` were granted."""
    return await _userinfo(request, server)


@post(PATH, PER_ADDRESS, status=200, hidden=True, any_query=True)
async def show_userinfo_by_post(request: RawRequest, server: AuthServer) -> dict[str, Any]:
    """Return the same for POST, as OpenID Connect allows."""
    return await _userinfo(request, server)


async def _userinfo(request: RawRequest, server: AuthServer) -> dict[str, Any]:
    access = await server.access_tokens.verify(request, wall_now())
    scheme = "bearer" if access.jkt is None else "dpop"
    if access.user_id is None:
        raise challenge(scheme, "invalid_token", "This token has no user.")
    if not PERSONAL_SCOPES & access.scopes:
        raise insufficient_scope(access, "openid")
    return await store.user_claims(
        server.bank.pool, server.bank.vault, access.user_id, customer_id=access.customer_id, scopes=access.scopes
    )
