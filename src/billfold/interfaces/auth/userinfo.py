"""Who signed in, told to whoever holds an access token with the scopes for it."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.domain import oauth
from billfold.domain.oauth import claims
from billfold.interfaces.auth.desk import Desk
from billfold.interfaces.http.access import challenge, prove_access
from billfold.interfaces.http.answers import Turned
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of
from billfold.interfaces.http.marks import ANY_QUERY, OPEN, refuses
from billfold.kit.clock import wall_now

PATH = "/api/v1/user"
_REFUSES = refuses("unauthorized", "invalid-dpop-proof", "forbidden")


@get(PATH, opt=OPEN | ANY_QUERY | _REFUSES, tags=["people"])
async def show_userinfo(request: ArrivedRequest, desk: Desk) -> Response[dict[str, Any]]:
    """Tell who signed in, as far as `profile`, `email` and `phone` were granted."""
    return await _tell(request, desk)


@post(PATH, opt=OPEN | ANY_QUERY, status_code=200, include_in_schema=False)
async def show_userinfo_by_post(request: ArrivedRequest, desk: Desk) -> Response[dict[str, Any]]:
    """Tell the same to who posts, as OpenID Connect allows."""
    return await _tell(request, desk)


async def _tell(request: ArrivedRequest, desk: Desk) -> Response[dict[str, Any]]:
    arrival, now, pool = arrival_of(request.scope), wall_now(), desk.bank.pool
    access = await prove_access(
        arrival, request.scope["query_string"], find=desk.find_access, pool=pool,
        nonces=desk.nonces, base=desk.issuer, now=now,
    )  # fmt: skip
    scheme = "bearer" if access.jkt is None else "dpop"
    if access.user_id is None:
        raise challenge(scheme, "invalid_token", "No person stands behind this token.")
    if not oauth.PERSONAL & access.scopes:
        value = f'{"DPoP" if access.jkt else "Bearer"} error="insufficient_scope", scope="openid"'
        raise Turned(
            "forbidden", "The token lacks the scope openid.", (b"www-authenticate", value.encode())
        )
    return Response(await claims.claims_of(pool, access.user_id, access.customer_id, access.scopes))


ROUTES: list[HTTPRouteHandler] = [show_userinfo, show_userinfo_by_post]
