"""Sign-out requested by a client (OpenID Connect RP-Initiated Logout)."""

from typing import Any
from uuid import UUID

from billfold.http.operations import PER_ADDRESS, get, post
from billfold.http.raw_request import RawRequest, is_uuid, parse_cookies
from billfold.http.responses import HttpResponse, redirect
from billfold.identity.users import sessions, store
from billfold.oauth import clients, consent, grants, signing_keys
from billfold.oauth.endpoint import Fields, fields_of, form_of
from billfold.oauth.grants import delete_tokens
from billfold.oauth.server.auth_server import AuthServer
from billfold.oauth.server.discovery import LOGOUT_OPENAPI
from billfold.oauth.types import Client, OAuthError
from billfold.pages.theme import COOKIE
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_token

PATH = "/api/oauth2/logout"
SIGN_OUT_PATH = "/sign-out"


@get(PATH, PER_ADDRESS, tag="authorization", status=303, any_query=True, documented=LOGOUT_OPENAPI)
async def log_out(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Sign a user out of the session of their ID token, and redirect them.

    With the session end the tokens that were issued from it, and the client's refresh tokens. Without an
    `id_token_hint`, or where the browser is signed in to another session, the user must confirm.
    """
    return await _log_out(server, request, fields_of(request.query))


@post(PATH, PER_ADDRESS, status=303, hidden=True, any_query=True)
async def log_out_by_form(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Do the same for parameters in a form."""
    return await _log_out(server, request, form_of(request))


async def _log_out(server: AuthServer, request: RawRequest, params: Fields) -> HttpResponse:
    hint = params.get("id_token_hint")
    keys = await server.signing_keys(wall_now())
    claims = None if hint is None else signing_keys.verify_id_token(keys, hint, issuer=server.issuer)
    if hint is not None and claims is None:
        raise OAuthError("invalid_request", "id_token_hint is not an ID token of this server.")
    client = await _client(server, params, claims)
    target = params.get("post_logout_redirect_uri")
    if target is not None and (client is None or target not in client.post_logout_redirect_uris):
        raise OAuthError("invalid_request", "post_logout_redirect_uri is not registered for this client.")
    if client is not None and claims is not None:
        await _end_session(server, client, claims)
    if claims is None or target is None or await _is_signed_in(server, request):
        return redirect(consent.redirect_with(server.issuer + SIGN_OUT_PATH, _page_params(client, params)))
    return redirect(consent.redirect_with(target, {"state": params.get("state")}))


async def _is_signed_in(server: AuthServer, request: RawRequest) -> bool:
    """Return whether this browser is signed in to a session other than the token's."""
    cookie_hash = hash_token(parse_cookies(request).get(COOKIE, ""))
    return await store.find_session(server.bank.pool, server.bank.vault, cookie_hash, now=wall_now()) is not None


def _page_params(client: Client | None, params: Fields) -> dict[str, str | None]:
    """Return the data with which the page redirects the user after sign-out."""
    if client is None or "post_logout_redirect_uri" not in params:
        return {}
    kept = {name: params.get(name) for name in ("post_logout_redirect_uri", "state")}
    return {"client_id": client.client_id, **kept}


async def _client(server: AuthServer, params: Fields, claims: dict[str, Any] | None) -> Client | None:
    client_id_param = params.get("client_id")
    if claims is not None and client_id_param not in {None, claims["aud"]}:
        raise OAuthError("invalid_request", "client_id is not the audience of the ID token.")
    client_id = client_id_param if claims is None else claims["aud"]
    return None if client_id is None else await clients.find_client(server.bank.pool, client_id)


async def _end_session(server: AuthServer, client: Client, claims: dict[str, Any]) -> None:
    """End the session of an ID token, with everything issued from it, and this client's offline access."""
    session_id = claims.get("sid")
    if not (isinstance(session_id, str) and is_uuid(session_id)):
        return
    session_uuid, user_id = UUID(session_id), UUID(claims["sub"])
    async with server.bank.pool.acquire() as conn, conn.transaction():
        await delete_tokens(conn, client_id=client.client_id, session_id=session_uuid)
        await sessions.end_one_session(conn, user_id, session_uuid)
        await grants.revoke_session_tokens(conn, session_uuid)
