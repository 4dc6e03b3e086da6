"""Signing out at a client's wish (OpenID Connect RP-Initiated Logout)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.domain import oauth
from billfold.domain.oauth import Client, OAuthError, signing
from billfold.interfaces.auth.desk import Desk
from billfold.interfaces.auth.forms import Fields, fields_of, form_of
from billfold.interfaces.auth.told import LOGOUT_TOLD
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of
from billfold.interfaces.http.ids_in import is_uuid
from billfold.interfaces.http.marks import ANY_QUERY, OPEN
from billfold.kit.clock import wall_now

PATH = "/api/oauth2/logout"
SIGN_OUT_PATH = "/sign-out"


@get(PATH, opt=OPEN | ANY_QUERY | LOGOUT_TOLD, status_code=303, tags=["authorization"])
async def log_out(request: ArrivedRequest, desk: Desk) -> Response[Any]:
    """End what a client was granted in one session, as its ID token says, and send on.

    Without a valid `id_token_hint` nothing ends here: the person is shown the page to sign out.
    """
    return await _leave(desk, fields_of(request.scope["query_string"]))


@post(PATH, opt=OPEN | ANY_QUERY, status_code=303, include_in_schema=False)
async def log_out_by_form(request: ArrivedRequest, desk: Desk) -> Response[Any]:
    """Do the same for parameters in a form."""
    return await _leave(desk, form_of(arrival_of(request.scope)))


async def _leave(desk: Desk, sent: Fields) -> Response[Any]:
    hint = sent.get("id_token_hint")
    keys = await desk.signing_keys(wall_now())
    claims = None if hint is None else signing.verified(keys, hint, issuer=desk.issuer)
    if hint is not None and claims is None:
        raise OAuthError("invalid_request", "id_token_hint is no ID token of this server.")
    client = await _client(desk, sent, claims)
    target = sent.get("post_logout_redirect_uri")
    if target is not None and (client is None or target not in client.post_logout_redirect_uris):
        raise OAuthError(
            "invalid_request", "post_logout_redirect_uri is not registered for this client."
        )
    if client is not None and claims is not None:
        await _end(desk, client, claims)
    if target is None or claims is None:
        return _send(desk.issuer + SIGN_OUT_PATH)
    return _send(oauth.redirect_with(target, {"state": sent.get("state")}))


async def _client(desk: Desk, sent: Fields, claims: dict[str, Any] | None) -> Client | None:
    named = sent.get("client_id")
    if claims is not None and named not in {None, claims["aud"]}:
        raise OAuthError("invalid_request", "client_id is not whom the ID token was made for.")
    client_id = named if claims is None else claims["aud"]
    return None if client_id is None else await oauth.find_client(desk.bank.pool, client_id)


async def _end(desk: Desk, client: Client, claims: dict[str, Any]) -> None:
    session_id = claims.get("sid")
    if isinstance(session_id, str) and is_uuid(session_id):
        async with desk.bank.pool.acquire() as conn:
            await oauth.leave_session(conn, client.client_id, UUID(session_id))


def _send(address: str) -> Response[Any]:
    return Response(b"", status_code=303, headers={"location": address})


ROUTES: list[HTTPRouteHandler] = [log_out, log_out_by_form]
