"""The whole server of a bank, all its hosts, in this process."""

from typing import Any

import httpx
import pytest
from tests.support.world import new_partner

from billfold.platform import ids
from billfold.platform.crypto import sign_request
from billfold.wiring.server import make_host_router

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
async def send(bank):
    """Send a request to a host: to acme signed by a partner, to others with an unknown token."""
    partner = await new_partner(bank)
    router: Any = make_host_router(bank)
    async with (
        router.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(router, raise_app_exceptions=False)) as client,
    ):

        async def send_to(method, host, path, *, headers=None, body=None):
            key = str(ids.new())
            signed_path = path.partition("?")[0]
            sent = {
                "authorization": f"Bearer {partner.token if host == 'acme' else 'x'}",
                "x-service-idempotency": key,
                "x-service-signature": sign_request(partner.secret, key, signed_path, body=b""),
            }
            if body is None:
                body = b'{"username":"acme-app","password":"wrong"}' if "login" in path else b""
            sent |= {"content-type": "application/json"} if "login" in path else FORM if method == "POST" else {}
            origin = f"https://{host}.localhost:{bank.settings.port}"
            return await client.request(method, origin + path, content=body, headers=sent | (headers or {}))

        yield send_to
