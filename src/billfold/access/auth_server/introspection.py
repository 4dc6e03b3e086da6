"""What a client may do with its own tokens: ask about one (RFC 7662), end one (RFC 7009)."""

from __future__ import annotations

from typing import Any

from billfold.access.auth_server.auth_server import Desk
from billfold.access.auth_server.form_params import form_of, required
from billfold.access.auth_server.openapi import INTROSPECT_TOLD, REVOKE_TOLD
from billfold.access.oauth import grants
from billfold.access.oauth.grants import Told
from billfold.http.operations import OPEN, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import TEXT, HttpResponse
from billfold.platform.clock import wall_now


@post("/api/oauth2/introspect", OPEN, status=200, any_query=True, documented=INTROSPECT_TOLD)
async def introspect_token(request: RawRequest, desk: Desk) -> dict[str, Any]:
    """Tell a client what its own token stands for. Any other text is not active."""
    now = wall_now()
    form = form_of(request)
    proven = await desk.prove(request, form, now)
    found = await grants.tell_of(desk.bank.pool, proven.client, required(form, "token"), now)
    return {"active": False} if found is None else _told(desk.issuer, found)


@post("/api/oauth2/revoke", OPEN, status=200, any_query=True, documented=REVOKE_TOLD)
async def revoke_token(request: RawRequest, desk: Desk) -> HttpResponse:
    """End a token of the client; with a refresh token everything that came of it.

    What is no token of the client is answered the same, and changes nothing.
    """
    now = wall_now()
    form = form_of(request)
    proven = await desk.prove(request, form, now)
    async with desk.bank.pool.acquire() as conn:
        await grants.revoke_token(conn, proven.client, required(form, "token"))
    return HttpResponse(200, TEXT)


def _told(issuer: str, found: Told) -> dict[str, Any]:
    subject = found.client_id if found.user_id is None else str(found.user_id)
    told: dict[str, Any] = {
        "active": True,
        "iss": issuer,
        "client_id": found.client_id,
        "sub": subject,
        "customer_id": str(found.customer_id),
        "scope": " ".join(found.scopes),
        "iat": int(found.issued_at.timestamp()),
        "exp": int(found.expires_at.timestamp()),
    }
    if found.is_access:
        told["token_type"] = "Bearer" if found.jkt is None else "DPoP"
    if found.jkt is not None:
        told["cnf"] = {"jkt": found.jkt}
    return told
