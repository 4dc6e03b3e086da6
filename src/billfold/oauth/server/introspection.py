"""What a client may do with its own tokens: ask about one (RFC 7662), end one (RFC 7009)."""

from __future__ import annotations

from typing import Any

from billfold.oauth.server.auth_server import AuthServer
from billfold.oauth.server.openapi import INTROSPECT_OPENAPI, REVOKE_OPENAPI
from billfold.oauth import grants
from billfold.oauth.endpoint import form_of, required
from billfold.oauth.grants import TokenIntrospection
from billfold.http.operations import PER_ADDRESS, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import TEXT, HttpResponse
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

    What is no token of the client is answered the same, and changes nothing.
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
