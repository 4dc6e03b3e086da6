"""Signing out at a client's wish (OpenID Connect RP-Initiated Logout)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from billfold.access.auth_server.auth_server import Desk
from billfold.access.auth_server.form_params import Fields, fields_of, form_of
from billfold.access.auth_server.openapi import LOGOUT_TOLD
from billfold.access.oauth import clients, consent, grants
from billfold.access.oauth import signing_keys as signing
from billfold.access.oauth.errors import OAuthError
from billfold.access.oauth.types import Client
from billfold.access.pages.session import COOKIE, cookies_of
from billfold.access.users import sessions
from billfold.access.users import store as user_store
from billfold.http.operations import OPEN, get, post
from billfold.http.path_ids import is_uuid
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, redirect
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_token

PATH = "/api/oauth2/logout"
SIGN_OUT_PATH = "/sign-out"


@get(PATH, OPEN, tag="authorization", status=303, any_query=True, documented=LOGOUT_TOLD)
async def log_out(request: RawRequest, desk: Desk) -> HttpResponse:
    """Sign a person out of the session his ID token was made in, and send him on.

    With the session end the tokens that came of it, and the client's refresh tokens. Without an
    `id_token_hint`, or where the browser is signed in to another session, the person is asked.
    """
    return await _leave(desk, request, fields_of(request.query))


@post(PATH, OPEN, status=303, hidden=True, any_query=True)
async def log_out_by_form(request: RawRequest, desk: Desk) -> HttpResponse:
    """Do the same for parameters in a form."""
    return await _leave(desk, request, form_of(request))


async def _leave(desk: Desk, arrival: RawRequest, sent: Fields) -> HttpResponse:
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
    if claims is None or target is None or await _is_signed_in(desk, arrival):
        return redirect(consent.redirect_with(desk.issuer + SIGN_OUT_PATH, _carried(client, sent)))
    return redirect(consent.redirect_with(target, {"state": sent.get("state")}))


async def _is_signed_in(desk: Desk, arrival: RawRequest) -> bool:
    """Tell whether this browser is signed in still: not in the session the token was made in."""
    cookie_hash = hash_token(cookies_of(arrival).get(COOKIE, ""))
    return await user_store.find_session(desk.bank.pool, cookie_hash, wall_now()) is not None


def _carried(client: Client | None, sent: Fields) -> dict[str, str | None]:
    """Return what the page needs to send the person on once he has signed out."""
    if client is None or "post_logout_redirect_uri" not in sent:
        return {}
    kept = {name: sent.get(name) for name in ("post_logout_redirect_uri", "state")}
    return {"client_id": client.client_id, **kept}


async def _client(desk: Desk, sent: Fields, claims: dict[str, Any] | None) -> Client | None:
    named = sent.get("client_id")
    if claims is not None and named not in {None, claims["aud"]}:
        raise OAuthError("invalid_request", "client_id is not whom the ID token was made for.")
    client_id = named if claims is None else claims["aud"]
    return None if client_id is None else await clients.find_client(desk.bank.pool, client_id)


async def _end(desk: Desk, client: Client, claims: dict[str, Any]) -> None:
    """End the session an ID token was made in: what all got of it, and this client's for good."""
    session_id = claims.get("sid")
    if not (isinstance(session_id, str) and is_uuid(session_id)):
        return
    ended, user_id = UUID(session_id), UUID(claims["sub"])
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        await grants.leave_session(conn, client.client_id, ended)
        await sessions.end_one_session(conn, user_id, ended)
        await grants.revoke_session(conn, ended)
