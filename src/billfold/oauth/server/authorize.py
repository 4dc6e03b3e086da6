"""The authorization endpoint: a request is checked, and the browser redirected to the consent page.

Where the client or its redirect address is unknown there is no redirect: a page says why. Every
answer that goes back to a client names who gives it (`iss`, RFC 9207).
"""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from billfold.http.operations import PER_ADDRESS, get, post
from billfold.http.raw_request import RawRequest, is_uuid
from billfold.http.responses import HttpResponse, json_response, redirect
from billfold.oauth import authorization_requests, clients, consent
from billfold.oauth.endpoint import Fields, fields_of, form_of
from billfold.oauth.rules import authorization_params as asking
from billfold.oauth.server.auth_server import AuthServer
from billfold.oauth.server.openapi import AUTHORIZE_OPENAPI, PUSH_OPENAPI
from billfold.oauth.types import Client, OAuthError
from billfold.platform.clock import wall_now
from billfold.platform.errors import NotFound

PATH = "/api/oauth2/authorize"
CONSENT_PATH = "/consent"
_RESPONSE_PARAMS = ("code", "state", "iss", "error", "error_description")


@get(PATH, PER_ADDRESS, tag="authorization", status=303, any_query=True, documented=AUTHORIZE_OPENAPI)
async def authorize(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Begin an authorization request, with parameters in the query or a `request_uri`."""
    return await _begin(server, request, posted=False)


@post(PATH, PER_ADDRESS, status=303, hidden=True, any_query=True)
async def authorize_by_form(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Begin an authorization request, with parameters in a form."""
    return await _begin(server, request, posted=True)


@get("/api/oauth2/form-post/{request_id}", PER_ADDRESS, hidden=True, any_query=True)
async def form_post_response(request_id: str, request: RawRequest, server: AuthServer) -> HttpResponse:
    """Let the browser carry an answer in a form, for clients that want it so."""
    if not is_uuid(request_id):
        raise NotFound("There is no answer to be carried.")
    async with server.bank.pool.acquire() as conn:
        action = await consent.get_form_post_target(conn, UUID(request_id), wall_now())
    params = fields_of(request.query)
    fields = {name: params[name] for name in _RESPONSE_PARAMS if name in params}
    return server.page("form_post", form_target_uri=action, action=action, fields=fields)


async def _begin(server: AuthServer, request: RawRequest, *, posted: bool) -> HttpResponse:
    # Until the redirect address is known to be the client's, an error is a page.
    now = wall_now()
    params = form_of(request) if posted else fields_of(request.query)
    client = await _get_client(server, params)
    if "request_uri" in params:
        request_id = await authorization_requests.get_pushed_request_id(
            server.bank.pool, client, params["request_uri"], now=now
        )
        return _redirect_to_consent(server, request_id)
    redirect_uri = asking.parse_redirect_uri(client, params)
    try:
        return _redirect_to_consent(server, await _create_request(server, client, params, now=now))
    except OAuthError as error:
        return _redirect(redirect_uri, _error_params(server, params, error))


async def _get_client(server: AuthServer, params: Fields) -> Client:
    client_id = params.get("client_id")
    client = None if client_id is None else await clients.find_client(server.bank.pool, client_id)
    if client is None or client.revoked_at is not None:
        raise OAuthError("invalid_client", "The application is not known here.")
    return client


async def _create_request(server: AuthServer, client: Client, params: Fields, now: datetime) -> UUID:
    if client.is_fapi2:
        raise OAuthError("invalid_request", "This client must push its requests (request_uri).")
    authorization = asking.parse_authorization_params(client, params)
    return await authorization_requests.create_request(server.bank.pool, client, authorization, now=now)


def _error_params(server: AuthServer, params: Fields, error: OAuthError) -> Mapping[str, str | None]:
    return {
        "error": error.error,
        "error_description": error.description,
        "state": params.get("state"),
        "iss": server.issuer,
    }


def _redirect_to_consent(server: AuthServer, request_id: UUID) -> HttpResponse:
    return _redirect(server.issuer + CONSENT_PATH, {"request": str(request_id)})


def _redirect(uri: str, fields: Mapping[str, str | None]) -> HttpResponse:
    """Send the browser somewhere by 303: what was posted here is not posted there (RFC 9700)."""
    return redirect(consent.redirect_with(uri, fields))


class PushedAnswer(msgspec.Struct, frozen=True):
    """What stands for the request, and for how many seconds."""

    request_uri: str
    expires_in: int


@post("/api/oauth2/par", PER_ADDRESS, tag="authorization", any_query=True, documented=PUSH_OPENAPI)
async def push_authorization_request(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Keep an authorization request and answer the `request_uri` that stands for it.

    A DPoP proof, or `dpop_jkt`, binds the code to that key.
    """
    now = wall_now()
    form = form_of(request)
    proven = await server.prove(request, form, now)
    authorization = asking.parse_authorization_params(proven.client, form, proven=proven.jkt)
    request_uri, seconds = await authorization_requests.push_request(
        server.bank.pool, proven.client, authorization, now=now
    )
    answer = PushedAnswer(request_uri, seconds)
    return json_response(answer, 201, *server.nonce_headers(proven.client, now))
