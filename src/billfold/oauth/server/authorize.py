"""The authorization endpoint: checks a request and redirects the browser to the consent page.

If the client or its redirect address is unknown there is no redirect: a page says why. Every
answer to a client names its issuer (`iss`, RFC 9207).
"""

from collections.abc import Mapping
from dataclasses import astuple
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from billfold.http.operations import PER_ADDRESS, get, post
from billfold.http.raw_request import RawRequest, is_uuid
from billfold.http.responses import HttpResponse, json_response, redirect
from billfold.oauth import clients, consent
from billfold.oauth.endpoint import Fields, fields_of, form_of
from billfold.oauth.rules import authorization_params
from billfold.oauth.rules.authorization_params import AuthorizationParams
from billfold.oauth.server.auth_server import AuthServer
from billfold.oauth.server.discovery import AUTHORIZE_OPENAPI, PUSH_OPENAPI
from billfold.oauth.types import Client, OAuthError, PendingRequest
from billfold.platform import crypto, ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Db
from billfold.platform.errors import NotFound

PUSHED_REQUEST_LIFETIME = timedelta(seconds=90)
"""Time in which a pushed request may be brought to the authorization endpoint."""
PENDING_REQUEST_LIFETIME = timedelta(minutes=30)
"""Time that a user may take to sign in and answer."""
URI_PREFIX = "urn:ietf:params:oauth:request_uri:"

_NEW = """
INSERT INTO oauth_authorization_request (request_id, client_id, uri_hash, uri_expires_at, redirect_uri,
    scopes, state, nonce, response_mode, code_challenge, jkt, prompts, max_age, login_hint,
    created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""
_FIND_PUSHED = """
SELECT request_id FROM oauth_authorization_request
 WHERE uri_hash = $1 AND client_id = $2 AND uri_expires_at > $3 AND decided_at IS NULL
"""
_PENDING = """
SELECT r.request_id, r.client_id, c.name AS client_name, c.description AS client_description,
       r.redirect_uri, r.scopes, r.login_hint, r.prompts, r.max_age,
       'refresh_token' = ANY(c.grant_types) AS refreshes, c.owner_id, o.name AS publisher,
       r.created_at, r.expires_at
  FROM oauth_authorization_request r JOIN oauth_client c USING (client_id)
  LEFT JOIN customer o ON o.customer_id = c.owner_id
 WHERE r.request_id = $1 AND r.decided_at IS NULL AND r.expires_at > $2 AND c.revoked_at IS NULL
"""


async def push_request(conn: Db, client: Client, params: AuthorizationParams, now: datetime) -> tuple[str, int]:
    """Store a request that its client has pushed; return its request_uri and its lifetime in seconds.

    Until a user has answered, it may be opened repeatedly: browsers prefetch.
    """
    reference, uri_hash = crypto.new_token()
    await create_request(conn, client, params, now=now, uri_hash=uri_hash)
    return URI_PREFIX + reference, int(PUSHED_REQUEST_LIFETIME.total_seconds())


async def create_request(
    conn: Db,
    client: Client,
    params: AuthorizationParams,
    now: datetime,
    *,
    uri_hash: bytes | None = None,
) -> UUID:
    """Store a request, brought by a browser or pushed under a hash; return its id."""
    request_id = ids.new()
    uri_expires_at = None if uri_hash is None else now + PUSHED_REQUEST_LIFETIME
    await conn.execute(
        _NEW,
        request_id,
        client.client_id,
        uri_hash,
        uri_expires_at,
        *astuple(params),
        now,
        now + PENDING_REQUEST_LIFETIME,
    )
    return request_id


async def get_pushed_request_id(conn: Db, client: Client, request_uri: str, now: datetime) -> UUID:
    """Return the id of a pushed request. Raises OAuthError `invalid_request_uri`.

    A reference may be unknown, another client's, expired or answered; the error does not tell which.
    """
    if not request_uri.startswith(URI_PREFIX):
        raise OAuthError("invalid_request_uri", "Only request_uris of this server are accepted.")
    reference = crypto.hash_token(request_uri.removeprefix(URI_PREFIX))
    found: UUID | None = await conn.fetchval(_FIND_PUSHED, reference, client.client_id, now)
    if found is None:
        raise OAuthError("invalid_request_uri", "The request_uri is unknown, expired or used.")
    return found


async def get_pending_request(conn: Db, request_id: UUID, now: datetime) -> PendingRequest:
    """Return a request that waits for a user's answer. Raises NotFound."""
    row = await conn.fetchrow(_PENDING, request_id, now)
    if row is None:
        raise NotFound("The request is unknown, too old, or answered.")
    return msgspec.convert(dict(row), PendingRequest)


PATH = "/api/oauth2/authorize"
CONSENT_PATH = "/consent"
_RESPONSE_PARAMS = ("code", "state", "iss", "error", "error_description")


@get(PATH, PER_ADDRESS, tag="authorization", status=303, any_query=True, documented=AUTHORIZE_OPENAPI)
async def authorize(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Begin an authorization request, with parameters in the query or a `request_uri`."""
    return await _begin_authorization(server, request, posted=False)


@post(PATH, PER_ADDRESS, status=303, hidden=True, any_query=True)
async def authorize_by_form(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Begin an authorization request, with parameters in a form."""
    return await _begin_authorization(server, request, posted=True)


@get("/api/oauth2/form-post/{request_id}", PER_ADDRESS, hidden=True, any_query=True)
async def form_post_response(request_id: str, request: RawRequest, server: AuthServer) -> HttpResponse:
    """Deliver an answer in a form posted by the browser, for clients that request it."""
    if not is_uuid(request_id):
        raise NotFound("There is no such pending answer.")
    async with server.bank.pool.acquire() as conn:
        action = await consent.get_form_post_target(conn, UUID(request_id), wall_now())
    params = fields_of(request.query)
    fields = {name: params[name] for name in _RESPONSE_PARAMS if name in params}
    return server.page("form_post", form_target_uri=action, action=action, fields=fields)


async def _begin_authorization(server: AuthServer, request: RawRequest, *, posted: bool) -> HttpResponse:
    # Until the redirect address is known to be the client's, an error is a page.
    now = wall_now()
    params = form_of(request) if posted else fields_of(request.query)
    client = await _get_client(server, params)
    if "request_uri" in params:
        request_id = await get_pushed_request_id(server.bank.pool, client, params["request_uri"], now=now)
        return _redirect_to_consent(server, request_id)
    redirect_uri = authorization_params.parse_redirect_uri(client, params)
    try:
        return _redirect_to_consent(server, await _create_request(server, client, params, now=now))
    except OAuthError as error:
        return _redirect(redirect_uri, _error_params(server, params, error))


async def _get_client(server: AuthServer, params: Fields) -> Client:
    client_id = params.get("client_id")
    client = None if client_id is None else await clients.find_client(server.bank.pool, client_id)
    if client is None or client.revoked_at is not None:
        raise OAuthError("invalid_client", "The application is unknown.")
    return client


async def _create_request(server: AuthServer, client: Client, params: Fields, now: datetime) -> UUID:
    if client.is_fapi2:
        raise OAuthError("invalid_request", "This client must push its requests (request_uri).")
    authorization = authorization_params.parse_authorization_params(client, params)
    return await create_request(server.bank.pool, client, authorization, now=now)


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
    """Redirect the browser with 303, so that it does not repeat the POST there (RFC 9700)."""
    return redirect(consent.redirect_with(uri, fields))


class PushedAnswer(msgspec.Struct, frozen=True):
    """The reference to the pushed request, and its lifetime in seconds."""

    request_uri: str
    expires_in: int


@post("/api/oauth2/par", PER_ADDRESS, tag="authorization", any_query=True, documented=PUSH_OPENAPI)
async def push_authorization_request(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Store an authorization request and return its `request_uri`.

    A DPoP proof, or `dpop_jkt`, binds the code to that key.
    """
    now = wall_now()
    form = form_of(request)
    proven = await server.prove(request, form, now)
    authorization = authorization_params.parse_authorization_params(proven.client, form, proven=proven.jkt)
    request_uri, seconds = await push_request(server.bank.pool, proven.client, authorization, now=now)
    answer = PushedAnswer(request_uri, seconds)
    return json_response(answer, 201, *server.nonce_headers(proven.client, now))
