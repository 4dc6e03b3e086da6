"""The port of plain http."""

import asyncio
import json
from contextlib import suppress

import httpx
import pytest

from billfold.http import serve
from billfold.http.serve import serve_plain


@pytest.fixture
async def port():
    server = await serve_plain("127.0.0.1", 0, https_host="acme.localhost:8443")
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_every_plain_http_request_is_refused_with_https_required(port, method):
    async with httpx.AsyncClient() as sample_client:
        url = f"http://127.0.0.1:{port}/api/v1/login/"
        answer = await sample_client.request(method, url, content=b"x" * 200_000)
    assert (answer.status_code, answer.json()["code"]) == (403, "https-required")
    assert answer.json()["type"] == "https://acme.localhost:8443/docs/errors/https-required"
    assert answer.headers["connection"] == "close"
    assert "location" not in answer.headers


async def test_the_https_required_response_is_sent_before_reading(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head, body = (await asyncio.wait_for(reader.read(), 5)).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden")
    assert json.loads(body)["status"] == 403
    writer.close()


async def test_an_endless_plain_http_connection_is_closed(port, monkeypatch):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n")
    await reader.read()
    started = asyncio.get_running_loop().time()
    with pytest.raises((ConnectionError, TimeoutError)):
        await send_for_ever(writer)
    assert asyncio.get_running_loop().time() - started < 8
    writer.close()


async def test_plain_http_connections_over_the_limit_are_closed(monkeypatch):
    monkeypatch.setattr(serve, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(serve, "LINGER_SECONDS", 60)
    async with await serve_plain("127.0.0.1", 0, https_host="acme.localhost:8443") as server:
        port = server.sockets[0].getsockname()[1]
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, _ in opened:
            assert (await reader.readline()).startswith(b"HTTP/1.1 403")
        refused, one_too_many = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await refused.readexactly(1)
        one_too_many.close()
        for _, writer in opened:
            writer.close()
        answer = b""
        while not answer:
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with suppress(ConnectionError):
                answer = await reader.readline()
            writer.close()
        assert answer.startswith(b"HTTP/1.1 403")


async def send_for_ever(writer):
    for _ in range(100):
        writer.write(b"x: y\r\n" * 1000)
        await writer.drain()
        await asyncio.sleep(0.1)
