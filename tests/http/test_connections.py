"""Slow connections: limited per network, with a deadline for bodies, and without effect on others."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_network

import pytest
from tests.support.world import close_app

from billfold.apis.partner_api import create_partner_app
from billfold.http import edge
from billfold.http.serve import ConnectionLimits
from billfold.identity.partners import login_routes
from billfold.oauth import jwt_login_routes
from billfold.platform.settings.settings import Settings

MOST = 3
SETTINGS = Settings(connections_per_address=MOST, trusted_proxies=(ip_network("10.0.0.0/8"),))


class ReadsBodies:
    """An application that responds 200 once the body has arrived."""

    @asynccontextmanager
    async def lifespan(self):
        yield

    async def __call__(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Sent:
    """A request whose body the test sends in parts."""

    def __init__(self, app, address, port, **scope):
        self.body: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self.answer = []
        self.scope = {
            "type": "http",
            "method": "POST",
            "scheme": "https",
            "path": "/api/v1/login/",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-length", b"100")],
            "client": (address, port),
            **scope,
        }
        self.task = asyncio.create_task(app(self.scope, self.body.get, self._send))

    async def _send(self, message):
        self.answer.append(message)

    @property
    def status(self):
        return self.answer[0]["status"] if self.answer else None


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("crowd", "other"),
    [
        (["192.0.2.1"] * 5, "192.0.2.2"),
        ([f"2001:db8:0:1::{n}" for n in range(5)], "2001:db8:0:2::1"),
        (["::ffff:192.0.2.1"] * 5, "::ffff:192.0.2.2"),
    ],
)
async def test_the_slowest_connections_of_a_network_over_its_limit_are_closed(crowd, other):
    app = ConnectionLimits(ReadsBodies(), SETTINGS)
    adjacent = Sent(app, other, 1)
    await settle()
    sent = [Sent(app, address, port) for port, address in enumerate(crowd)]
    await settle()
    assert [each.status for each in sent] == [429, 429, None, None, None]
    assert dict(sent[0].answer[0]["headers"])[b"connection"] == b"close"
    for each in (adjacent, *sent[2:]):
        await each.body.put({"type": "http.request", "body": b"x" * 100, "more_body": False})
        await each.task
    assert [adjacent.status, *(each.status for each in sent[2:])] == [200] * 4


async def test_a_trusted_proxy_has_no_connection_limit():
    app = ConnectionLimits(ReadsBodies(), SETTINGS)
    sent = [Sent(app, "10.0.0.1", port) for port in range(9)]
    await settle()
    assert {each.status for each in sent} == {None}
    for each in sent:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in sent), return_exceptions=True)


async def test_the_oldest_idle_connections_are_closed_at_the_limit():
    async def keep_open(reader, writer):
        try:
            await reader.read()
        finally:
            writer.close()

    server = await asyncio.start_server(keep_open, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    limits = ConnectionLimits(ReadsBodies(), replace(SETTINGS, port=port))
    opened = [await asyncio.open_connection("127.0.0.1", port)]
    address, own_port = opened[0][1].get_extra_info("sockname")
    busy = Sent(limits, address, str(own_port))  # the server names a port by a text
    await settle()
    limits.sweep()
    for _ in range(MOST + 1):
        opened.append(await asyncio.open_connection("127.0.0.1", port))
        limits.sweep()
    ended = [reader for reader, _ in opened[1:3]]
    async with asyncio.timeout(10):
        assert [await each.read() for each in ended] == [b"", b""]
    await settle()
    assert not any(reader.at_eof() for reader, _ in (opened[0], *opened[3:]))
    busy.task.cancel()
    for _, writer in opened:
        writer.close()
    server.close()


@pytest.mark.parametrize("path", ["/api/v1/login/", "/token/", "/nothing/", "/api/v1/customers/"])
async def test_a_request_body_that_never_arrives_times_out(bank, monkeypatch, path):
    monkeypatch.setattr(edge, "BODY_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(edge, "DROPPED_SECONDS", 0.01)
    app = create_partner_app(bank, operations=[login_routes.log_in, jwt_login_routes.exchange_assertion])
    sent = Sent(app, "192.0.2.1", 1, path=path)
    await sent.task
    assert sent.status in {401, 404, 405, 408}
    assert (sent.status == 408) is (path in {"/api/v1/login/", "/token/"})
    await close_app(app)
