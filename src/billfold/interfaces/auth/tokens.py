"""What a client may do with its own tokens: ask about one (RFC 7662), end one (RFC 7009)."""

from __future__ import annotations

from typing import Any

from litestar import Response, post
from litestar.handlers import HTTPRouteHandler

from billfold.domain import oauth
from billfold.interfaces.auth.desk import Desk
from billfold.interfaces.auth.forms import form_of, required
from billfold.interfaces.auth.told import INTROSPECT_TOLD, REVOKE_TOLD
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of
from billfold.interfaces.http.marks import ANY_QUERY, OPEN
from billfold.kit.clock import wall_now


@post(
    "/api/oauth2/introspect",
    opt=OPEN | ANY_QUERY | INTROSPECT_TOLD,
    status_code=200,
    tags=["tokens"],
)
async def introspect_token(request: ArrivedRequest, desk: Desk) -> Response[dict[str, Any]]:
    """Tell a client what its own token stands for. Any other text is not active."""
    arrival, now = arrival_of(request.scope), wall_now()
    form = form_of(arrival)
    proven = await desk.prove(arrival, form, now)
    found = await oauth.tell_of(desk.bank.pool, proven.client, required(form, "token"), now)
    return Response({"active": False} if found is None else _told(desk.issuer, found))


@post("/api/oauth2/revoke", opt=OPEN | ANY_QUERY | REVOKE_TOLD, status_code=200, tags=["tokens"])
async def revoke_token(request: ArrivedRequest, desk: Desk) -> Response[bytes]:
    """End a token of the client; with a refresh token everything that came of it.

    What is no token of the client is answered the same, and changes nothing.
    """
    arrival, now = arrival_of(request.scope), wall_now()
    form = form_of(arrival)
    proven = await desk.prove(arrival, form, now)
    async with desk.bank.pool.acquire() as conn:
        await oauth.revoke_token(conn, proven.client, required(form, "token"))
    return Response(b"", media_type="text/plain")


def _told(issuer: str, found: oauth.Told) -> dict[str, Any]:
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


ROUTES: list[HTTPRouteHandler] = [introspect_token, revoke_token]
