"""The application that answers under each host name."""

from typing import Any, cast

import httpx

from billfold.wiring.server import make_host_router

ANSWERS = {
    "https://auth.localhost:8443/.well-known/openid-configuration": 200,
    "https://AUTH.localhost/.well-known/openid-configuration": 200,
    "https://auth.localhost.:8443/api/oauth2/authorize": 400,
    "https://auth.localhost:8443/.well-known/oauth-authorization-server": 404,
    "https://acme.localhost:8443/.well-known/openid-configuration": 404,
    "https://localhost:8443/api/oauth2/authorize": 404,
    "https://acme.localhost:8443/health": 200,
    "https://acme.localhost:8443/docs/errors/not-found": 200,
    "https://api.localhost:8443/docs": 200,
    "https://auth.localhost:8443/docs/tutorial.md": 200,
    "https://cards.localhost:8443/docs/": 404,
    "https://acme.localhost:8443/docs2/": 404,
    "http://acme.localhost:8443/docs/": 403,
    "https://auth.localhost:8443/api/v1/login/": 404,
    "http://auth.localhost:8443/.well-known/openid-configuration": 403,
}


async def test_a_host_name_selects_its_app_and_all_apps_share_one_lifespan(bank):
    houses = make_host_router(bank)
    transport = httpx.ASGITransport(cast("Any", houses), raise_app_exceptions=False)
    async with houses.lifespan(), httpx.AsyncClient(transport=transport) as client:
        found = {address: (await client.get(address)).status_code for address in ANSWERS}
    assert found == ANSWERS
