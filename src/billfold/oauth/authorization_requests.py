"""Authorization requests on their way from a client to a user's answer."""

from dataclasses import astuple
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from billfold.oauth.rules.authorization_params import AuthorizationParams
from billfold.oauth.types import Client, OAuthError, PendingRequest
from billfold.platform import crypto, ids
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import NotFound

PUSHED_REQUEST_LIFETIME = timedelta(seconds=90)
"""How long a pushed request may be brought to the authorization endpoint."""
PENDING_REQUEST_LIFETIME = timedelta(minutes=30)
"""How long a user may take to sign in and answer."""
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


async def push_request(
    conn: Connection | Pool, client: Client, params: AuthorizationParams, now: datetime
) -> tuple[str, int]:
    """Keep a request that its client has pushed; return its request_uri and for how many seconds.

    Until a user has answered, it may be opened again and again: browsers look ahead.
    """
    reference, uri_hash = crypto.new_token()
    await create_request(conn, client, params, now=now, uri_hash=uri_hash)
    return URI_PREFIX + reference, int(PUSHED_REQUEST_LIFETIME.total_seconds())


async def create_request(
    conn: Connection | Pool,
    client: Client,
    params: AuthorizationParams,
    now: datetime,
    *,
    uri_hash: bytes | None = None,
) -> UUID:
    """Keep a request, brought by a browser or pushed under a hash; return its id."""
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


async def get_pushed_request_id(conn: Connection | Pool, client: Client, request_uri: str, now: datetime) -> UUID:
    """Return the id of a pushed request. Raises OAuthError `invalid_request_uri`.

    A reference is unknown, another client's, expired or answered; the error does not say which.
    """
    if not request_uri.startswith(URI_PREFIX):
        raise OAuthError("invalid_request_uri", "Only request_uris of ours are taken.")
    reference = crypto.hash_token(request_uri.removeprefix(URI_PREFIX))
    found: UUID | None = await conn.fetchval(_FIND_PUSHED, reference, client.client_id, now)
    if found is None:
        raise OAuthError("invalid_request_uri", "The request_uri is unknown, expired or used.")
    return found


async def get_pending_request(conn: Connection | Pool, request_id: UUID, now: datetime) -> PendingRequest:
    """Return a request that waits for a user's answer. Raises NotFound."""
    row = await conn.fetchrow(_PENDING, request_id, now)
    if row is None:
        raise NotFound("The request is unknown, too old, or answered.")
    return msgspec.convert(dict(row), PendingRequest)
