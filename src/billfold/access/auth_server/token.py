"""The token endpoint: a code, a refresh token or a client's own word becomes an access token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from billfold.access.auth_server.auth_server import TOKEN_PATH, Desk, Proven
from billfold.access.auth_server.form_params import Fields, form_of, required
from billfold.access.auth_server.openapi import TOKEN_TOLD
from billfold.access.oauth import access_tokens, token_exchange
from billfold.access.oauth import signing_keys as signing
from billfold.access.oauth.errors import OAuthError
from billfold.access.oauth.rules import claims
from billfold.access.oauth.rules.scopes import scopes_in
from billfold.access.oauth.token_exchange import Exchanged
from billfold.access.oauth.types import BY_ITSELF, CODE, REFRESH, Holder
from billfold.http.operations import OPEN, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.platform import ids
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

Exchange = Callable[["Connection", Proven, Fields, datetime], Awaitable[Exchanged]]


class TokenAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What RFC 6749 and OpenID Connect answer. `token_type` is DPoP for tokens bound to a key."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: str | None = None
    id_token: str | None = None


@post(TOKEN_PATH, OPEN, tag="tokens", status=200, any_query=True, documented=TOKEN_TOLD)
async def issue_token(request: RawRequest, desk: Desk) -> HttpResponse:
    """Issue an access token for 900 seconds."""
    now = wall_now()
    form = form_of(request)
    grant_type = required(form, "grant_type")
    proven = await desk.prove(request, form, now, must_bind=True)
    exchange = _EXCHANGES.get(grant_type)
    if exchange is None:
        raise OAuthError("unsupported_grant_type", f"grant_type is one of {', '.join(_EXCHANGES)}.")
    if grant_type not in proven.client.grant_types:
        raise OAuthError("unauthorized_client", "This client is not registered for the grant.")
    async with desk.bank.pool.acquire() as conn:
        exchanged = await exchange(conn, proven, form, now)
        id_token = await _id_token(desk, conn, proven, exchanged, now)
    answer = TokenAnswer(
        access_token=exchanged.access.token,
        token_type="Bearer" if exchanged.holder.jkt is None else "DPoP",
        expires_in=int((exchanged.access.expires_at - now).total_seconds()),
        scope=" ".join(exchanged.holder.scopes),
        refresh_token=exchanged.refresh_token,
        id_token=id_token,
    )
    headers = desk.nonce_for(proven.client, now)
    return json_response(answer, 200, (b"pragma", b"no-cache"), *headers)


async def _redeem(conn: Connection, proven: Proven, form: Fields, now: datetime) -> Exchanged:
    return await token_exchange.redeem_code(
        conn,
        proven.client,
        required(form, "code"),
        redirect_uri=form.get("redirect_uri"),
        verifier=form.get("code_verifier"),
        jkt=proven.jkt,
        now=now,
    )


async def _refresh(conn: Connection, proven: Proven, form: Fields, now: datetime) -> Exchanged:
    token = required(form, "refresh_token")
    return await token_exchange.refresh(
        conn, proven.client, token, scope=form.get("scope"), jkt=proven.jkt, now=now
    )


async def _by_itself(conn: Connection, proven: Proven, form: Fields, now: datetime) -> Exchanged:
    client = proven.client
    if client.customer_id is None:
        raise OAuthError("unauthorized_client", "This client acts for nobody.")
    holder = Holder(
        client_id=client.client_id,
        customer_id=client.customer_id,
        scopes=scopes_in(form.get("scope"), client.scopes),
        family_id=ids.new(),
        jkt=proven.jkt,
    )
    access = await access_tokens.issue_to(conn, holder, now)
    return Exchanged(holder=holder, access=access, refresh_token=None)


async def _id_token(
    desk: Desk, conn: Connection, proven: Proven, exchanged: Exchanged, now: datetime
) -> str | None:
    """Return an ID token where `openid` was granted: PS256 for fapi2 clients, else RS256."""
    holder = exchanged.holder
    if "openid" not in holder.scopes or holder.user_id is None:
        return None
    person = await claims.claims_of(conn, holder.user_id, holder.customer_id, holder.scopes)
    told = claims.id_token_claims(exchanged, person, issuer=desk.issuer, now=now)
    algorithm = "PS256" if proven.client.is_fapi2 else "RS256"
    return signing.sign(await desk.signing_keys(now), algorithm, told, now)


_EXCHANGES: dict[str, Exchange] = {CODE: _redeem, REFRESH: _refresh, BY_ITSELF: _by_itself}
