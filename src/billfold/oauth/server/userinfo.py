"""The claims of the signed-in user, for access tokens with the scopes for them (OpenID Connect UserInfo)."""

from typing import Any

from billfold.http.operations import PER_ADDRESS, get, post
from billfold.http.raw_request import RawRequest
from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.identity.users import store as user_store
from billfold.oauth.caller import challenge, insufficient_scope
from billfold.oauth.server.auth_server import AuthServer
from billfold.platform.clock import wall_now

PATH = "/api/v1/user"


@get(PATH, PER_ADDRESS, tag="people", any_query=True, refuses=("unauthorized", "invalid-dpop-proof", "forbidden"))
async def show_userinfo(request: RawRequest, server: AuthServer) -> dict[str, Any]:
    """Return the claims of the user, as far as `profile`, `email` and `phone` were granted."""
    return await _userinfo(request, server)


@post(PATH, PER_ADDRESS, status=200, hidden=True, any_query=True)
async def show_userinfo_by_post(request: RawRequest, server: AuthServer) -> dict[str, Any]:
    """Return the same for POST, as OpenID Connect allows."""
    return await _userinfo(request, server)


async def _userinfo(request: RawRequest, server: AuthServer) -> dict[str, Any]:
    access = await server.access_tokens.verify(request, wall_now())
    scheme = "bearer" if access.jkt is None else "dpop"
    if access.user_id is None:
        raise challenge(scheme, "invalid_token", "There is no user behind this token.")
    if not PERSONAL_SCOPES & access.scopes:
        raise insufficient_scope(access, "openid")
    return await user_store.user_claims(
        server.bank.pool, server.bank.vault, access.user_id, customer_id=access.customer_id, scopes=access.scopes
    )
