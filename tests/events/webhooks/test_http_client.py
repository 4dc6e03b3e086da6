"""Webhook calls connect only to the checked address and are bounded in time and size."""

import asyncio
import socket
import ssl
import time
from dataclasses import replace
from functools import partial
from ipaddress import ip_network

import aiodns
import pytest
from tests.events.webhooks.test_ssrf import resolving
from tests.support.events import LOOPBACK, LastWords, always, answer, receiving

from billfold.cli.tls import ensure_certificates
from billfold.events.webhooks import http_client, ssrf
from billfold.events.webhooks.http_client import GuardedWebhookClient, check_url
from billfold.platform.clock import wall_now
from billfold.platform.errors import InvalidInput
from billfold.platform.settings.settings import Settings

HEADERS = {"webhook-id": "1"}


@pytest.fixture
def http():
    return GuardedWebhookClient(allowed=LOOPBACK)


@pytest.fixture
def short_timeouts(monkeypatch):
    """Timeouts of the HTTP client are a fraction of a second."""
    monkeypatch.setattr(http_client, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(http_client, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(http_client, "BODY_SECONDS", 0.1)


async def post(http, url, body=b"{}"):
    line = http.connection(url)
    try:
        return await line.post(HEADERS, body)
    finally:
        await line.disconnect()


async def post_outcome(http, script):
    async with receiving(script) as receiver:
        got = await post(http, receiver.url)
    return got.code, got.message


async def test_a_webhook_body_arrives_unchanged_with_the_host_header(http):
    async with receiving() as receiver:
        got = await post(http, receiver.url, b'{"a": "\xc3\xbc"}')
        [request] = receiver.requests
    assert (got.code, got.message, got.retry_after) == (200, "OK", None)
    assert request.body == b'{"a": "\xc3\xbc"}'
    assert request.path == "/hook?a=1"
    assert receiver.url.startswith(f"http://{request.headers['host']}/")


async def test_a_webhook_connection_is_reused_for_the_next_call(http):
    async with receiving(always(answer(body=b"thank you"))) as receiver:
        line = http.connection(receiver.url)
        codes = [(await line.post(HEADERS, b"{}")).code for _ in range(3)]
        await line.disconnect()
    assert (codes, receiver.connections) == ([200] * 3, 1)


async def test_an_old_webhook_connection_is_replaced_after_a_new_dns_lookup(monkeypatch):
    asked = []

    async def resolve(host, _port):
        asked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(http_client, "CONNECTION_SECONDS", 0.0)
    async with receiving() as receiver:
        line = GuardedWebhookClient(allowed=LOOPBACK, resolve=resolve).connection(receiver.url)
        for _ in range(2):
            assert (await line.post(HEADERS, b"{}")).code == 200
        await line.disconnect()
    assert (asked, receiver.connections) == (["localhost"] * 2, 2)


async def test_a_webhook_call_on_a_stale_connection_is_retried(http):
    async with receiving(always(LastWords(answer()))) as receiver:
        line = http.connection(receiver.url)
        codes = [(await line.post(HEADERS, b"{}")).code for _ in range(2)]
        await line.disconnect()
    assert (codes, receiver.connections, len(receiver.requests)) == ([200, 200], 2, 2)


async def test_a_webhook_response_is_reported_by_status_without_its_body(http):
    secret = answer(500, "x-secret: 1", body=b"the database is at 10.0.0.1", reason="Leaking")
    assert await post_outcome(http, always(secret)) == (500, "Internal Server Error")
    assert await post_outcome(http, always(answer(410))) == (410, "Gone")
    assert await post_outcome(http, always(answer(299))) == (299, "a status without a name")


async def test_a_webhook_redirect_is_not_followed(http):
    async with receiving() as other:
        redirect = answer(301, f"location: {other.url}")
        assert await post_outcome(http, always(redirect)) == (301, "a redirect, which is not followed")
        assert other.requests == []


async def test_the_retry_after_header_of_a_webhook_response_is_returned(http):
    async with receiving(always(answer(429, "Retry-After: 120"))) as receiver:
        assert (await post(http, receiver.url)).retry_after == "120"


async def test_a_chunked_webhook_response_after_a_100_continue_is_accepted(http):
    async def script(_):
        return b"HTTP/1.1 102 Processing\r\n\r\n" + answer(202)

    assert await post_outcome(http, script) == (202, "Accepted")
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    assert await post_outcome(http, always(chunked)) == (200, "OK")


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"220 mail.example ESMTP\r\n\r\n", "an answer that is not HTTP"),
        (b"\x00\xff" * 100 + b"\r\n\r\n", "an answer that is not HTTP"),
        (b"HTTP/9.9 abc\r\n\r\n", "an answer that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "an answer that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "an answer that is not HTTP"),
        (LastWords(b"HTTP/1.1 200 OK\r\ncontent-"), "an answer that is not HTTP"),
        (None, "hung up without an answer"),
    ],
    ids=["smtp", "bytes", "version", "endless-headers", "negative-length", "cut-off", "silence"],
)
async def test_an_invalid_or_missing_webhook_response_is_reported_as_no_answer(http, sent, message):
    assert await post_outcome(http, always(sent)) == (0, message)


async def test_a_slow_webhook_receiver_times_out(http, short_timeouts):
    async def never(_):
        await asyncio.sleep(60)

    assert await post_outcome(http, never) == (0, "no answer in time")


async def test_an_endless_webhook_response_counts_without_being_read(http, short_timeouts):
    async with receiving() as receiver:

        async def endless(_):
            return b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n" + b"a" * 100_000

        receiver.script = endless
        line = http.connection(receiver.url)
        codes = [(await line.post(HEADERS, b"{}")).code for _ in range(2)]
        assert codes == [200, 200]
        assert receiver.connections == 2, "the connection is of no more use"
        await line.disconnect()


async def test_a_refused_webhook_connection_is_reported_as_no_connection(http):
    async with receiving() as receiver:
        url = receiver.url
    got = await post(http, url)
    assert (got.code, got.message) == (0, "no connection")


@pytest.mark.parametrize(("hangs", "message"), [(False, "the host was not found"), (True, "no answer in time")])
async def test_a_webhook_host_without_an_address_is_reported_as_no_answer(short_timeouts, hangs, message):
    async def resolve(_host, _port):
        if hangs:
            await asyncio.sleep(60)
        raise OSError

    got = await post(GuardedWebhookClient(resolve=resolve), "https://nobody.example/")
    assert (got.code, got.message) == (0, message)


async def test_a_silent_name_server_holds_up_neither_a_thread_nor_another_lookup(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        resolver = partial(aiodns.DNSResolver, nameservers=[f"127.0.0.1:{silent.getsockname()[1]}"], lookups="b")
        monkeypatch.setattr(aiodns, "DNSResolver", resolver)
        monkeypatch.setattr(ssrf, "LOOKUP_SECONDS", 1.0)  # the library itself gives up after two
        began = time.monotonic()
        thread = asyncio.create_task(asyncio.to_thread(time.monotonic))
        lookups = (ssrf.resolve_host(f"host{nth}.example", 443) for nth in range(20))
        answers = await asyncio.gather(*lookups, return_exceptions=True)
    assert {type(each) for each in answers} == {TimeoutError}
    assert await thread - began < 2
    assert time.monotonic() - began < 20


async def test_a_host_that_resolves_to_a_private_address_later_is_not_called():
    """DNS rebinding: the address is public when checked, and this machine when connected."""
    answers = [["93.184.216.34"], ["127.0.0.1"]]
    async with receiving() as receiver:
        port = int(receiver.url.split(":")[2].split("/")[0])

        async def resolve(_host, _port):
            return answers.pop(0)

        assert await resolve("a.example", port) == ["93.184.216.34"]
        got = await post(GuardedWebhookClient(resolve=resolve), f"https://a.example:{port}/")
        assert receiver.connections == 0
    assert got.code == 0
    assert got.message.startswith("not called: the address ")


async def test_loopback_is_not_called_unless_it_is_allowed():
    async with receiving() as receiver:
        got = await post(GuardedWebhookClient(), receiver.url)
        assert (got.code, receiver.connections) == (0, 0)


async def test_webhooks_ignore_proxies_from_the_environment(http, monkeypatch):
    async with receiving() as proxy, receiving() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert (await post(http, receiver.url)).code == 200
        assert proxy.connections == 0


async def test_a_webhook_falls_back_to_the_second_address_of_its_host():
    async def resolve(_host, _port):
        return ["127.0.0.99", "127.0.0.1"]

    async with receiving() as receiver:
        http = GuardedWebhookClient(allowed=LOOPBACK, resolve=resolve)
        assert (await post(http, receiver.url)).code == 200


async def test_a_webhook_certificate_is_verified_against_the_host_name(tmp_path):
    files = ensure_certificates(tmp_path, wall_now(), domain="hooks.localhost", partners=())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    names = []
    server.sni_callback = lambda _socket, name, _context: names.append(name)

    async def resolve(_host, _port):
        return ["127.0.0.1"]

    async with receiving(ssl=server) as receiver:
        port = receiver.url.split(":")[2].split("/")[0]
        trusting = GuardedWebhookClient(allowed=LOOPBACK, trusted_ca=files.authority, resolve=resolve)
        assert (await post(trusting, f"https://hooks.localhost:{port}/")).code == 200
        assert names == ["hooks.localhost"]
        assert receiver.requests[0].headers["host"] == f"hooks.localhost:{port}"
        for http, host in (
            (trusting, "elsewhere.localhost"),
            (GuardedWebhookClient(allowed=LOOPBACK, resolve=resolve), "hooks.localhost"),
        ):
            got = await post(http, f"https://{host}:{port}/")
            assert (got.code, got.message) == (0, "no trusted encryption")
    assert len(receiver.requests) == 1


LOCAL = replace(Settings(), webhook_allowed_networks=(ip_network("127.0.0.0/8"),))


async def refused(url, settings=LOCAL, *addresses):
    with pytest.raises(InvalidInput) as found:
        await check_url(url, settings, resolve=resolving(*addresses))
    return [error.loc for error in found.value.errors] == [("body", "url")]


async def test_an_unresolvable_webhook_host_is_accepted_only_in_standard_form():
    await check_url("https://a.example/hook", Settings(), resolve=resolving())
    assert await refused("http://a.example/hook")
    assert await refused("https://a.example:9000/hook")


async def test_a_webhook_url_with_a_private_address_is_refused():
    assert await refused("https://a.example/hook", LOCAL, "8.8.8.8", "10.0.0.1")
    for url in ("https://127.1/", "https://[::1]/", "https://169.254.169.254/latest/meta-data"):
        with pytest.raises(InvalidInput):
            await check_url(url, LOCAL)


async def test_a_loopback_webhook_url_is_accepted_only_when_allowed():
    await check_url("http://127.0.0.1:4242/hook", LOCAL)
    with pytest.raises(InvalidInput):
        await check_url("http://127.0.0.1:4242/hook", Settings())
    with pytest.raises(InvalidInput):
        await check_url("https://127.0.0.1/hook", Settings())
