"""Consent: a user approves a request for one customer, or denies it. Each request is answered once."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit
from uuid import UUID

from billfold.identity.members.store import is_active_member, require_company
from billfold.platform import crypto, ids
from billfold.platform.database.connection import Connection
from billfold.platform.errors import NotFound, Refused

CODE_LIFETIME = timedelta(seconds=60)
FORM_POST_PATH = "/api/oauth2/form-post/"
"""The path that makes a browser post the answer as a form, followed by the request's id."""

_CLAIM = """
UPDATE oauth_authorization_request r SET decided_at = $2
  FROM oauth_client c
 WHERE r.request_id = $1 AND r.decided_at IS NULL AND r.expires_at > $2
   AND c.client_id = r.client_id AND c.revoked_at IS NULL
RETURNING r.*, c.owner_id
"""
_GRANT = """
INSERT INTO oauth_grant AS g (grant_id, client_id, user_id, customer_id, scopes, created_at,
                              renewed_at)
VALUES ($1, $2, $3, $4, $5, $6, $6)
ON CONFLICT (client_id, user_id, customer_id) WHERE revoked_at IS NULL DO UPDATE
   SET scopes = array(SELECT DISTINCT unnest(g.scopes || excluded.scopes)),
       renewed_at = excluded.renewed_at
RETURNING grant_id
"""
_CODE = """
INSERT INTO authorization_code (code_hash, family_id, grant_id, user_id, customer_id, auth_time, session_id,
    issued_at, expires_at, client_id, redirect_uri, scopes, nonce, code_challenge, jkt)
SELECT $2, $3, $4, $5, $6, $7, $8, $9, $10, client_id, redirect_uri, scopes, nonce, code_challenge, jkt
  FROM oauth_authorization_request WHERE request_id = $1
"""


async def approve(
    conn: Connection,
    request_id: UUID,
    *,
    user_id: UUID,
    customer_id: UUID,
    authenticated_at: datetime,
    session_id: UUID,
    issuer: str,
    now: datetime,
) -> str:
    """Approve a request for one customer; return where to redirect the browser (303).

    Raises NotFound when the request is not pending, Refused `forbidden` when the user
    is not a member or the client is another company's, `insufficient-user-authentication` when
    the sign-in is older than the request's max_age.
    """
    async with conn.transaction():
        request_row = await _claim_request(conn, request_id, now)
        await _require_allowed(
            conn, request_row, user_id=user_id, customer_id=customer_id, authenticated_at=authenticated_at, now=now
        )
        grant_id = await conn.fetchval(
            _GRANT, ids.new(), request_row["client_id"], user_id, customer_id, request_row["scopes"], now
        )
        code, code_hash = crypto.new_token()
        await conn.execute(
            _CODE,
            request_id,
            code_hash,
            ids.new(),
            grant_id,
            user_id,
            customer_id,
            authenticated_at,
            session_id,
            now,
            now + CODE_LIFETIME,
        )
    return _response_uri(request_row, issuer, {"code": code})


async def _require_allowed(
    conn: Connection,
    request_row: Mapping[str, Any],
    *,
    user_id: UUID,
    customer_id: UUID,
    authenticated_at: datetime,
    now: datetime,
) -> None:
    """Check membership, the owner of the client, and the age of the sign-in. Raises Refused."""
    if not await is_active_member(conn, customer_id, user_id, lock=True):
        raise Refused("forbidden", "You are not an active member of this customer's team.")
    await require_company(conn, customer_id)
    if request_row["owner_id"] not in {None, customer_id}:
        raise Refused("forbidden", "This application works for another company only.")
    max_age = request_row["max_age"]
    if max_age is not None and authenticated_at + timedelta(seconds=max_age) < now:
        raise Refused("insufficient-user-authentication", "Sign in again to continue.")


async def deny(conn: Connection, request_id: UUID, *, issuer: str, now: datetime) -> str:
    """Deny a request; return where to redirect the browser. Raises NotFound."""
    request_row = await _claim_request(conn, request_id, now)
    return _response_uri(
        request_row, issuer, {"error": "access_denied", "error_description": "The user denied the request."}
    )


async def get_form_post_target(conn: Connection, request_id: UUID, now: datetime) -> str:
    """Return the address to which the form of an answered request goes. Raises NotFound after a minute."""
    uri: str | None = await conn.fetchval(
        "SELECT redirect_uri FROM oauth_authorization_request WHERE request_id = $1 "
        "AND decided_at > $2 AND response_mode = 'form_post'",
        request_id,
        now - CODE_LIFETIME,
    )
    if uri is None:
        raise NotFound("There is no such pending answer.")
    return uri


def redirect_with(uri: str, fields: Mapping[str, str | None]) -> str:
    """Return a registered address with fields added to its query; fields that are None are omitted."""
    parts = urlsplit(uri)
    added = urlencode({name: value for name, value in fields.items() if value is not None})
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, added)))))


def _response_uri(request_row: Any, issuer: str, fields: Mapping[str, str]) -> str:  # noqa: ANN401 - a record
    response_params = {**fields, "state": request_row["state"], "iss": issuer}
    if request_row["response_mode"] == "form_post":
        return redirect_with(f"{issuer}{FORM_POST_PATH}{request_row['request_id']}", response_params)
    return redirect_with(request_row["redirect_uri"], response_params)


async def _claim_request(conn: Connection, request_id: UUID, now: datetime) -> Any:  # noqa: ANN401 - a record of asyncpg
    request_row = await conn.fetchrow(_CLAIM, request_id, now)
    if request_row is None:
        raise NotFound("The request is unknown, too old, or answered.")
    return request_row
