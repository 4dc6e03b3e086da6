"""Scheme and address of a request behind a trusted or an untrusted proxy."""

from ipaddress import ip_network

import httpx
import pytest
from tests.support.cases import in_one_bank
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import close_app

from billfold.apis.partner_api import create_partner_app
from billfold.http.edge import client_of, is_bare, name_of, slug_of

PROXIES = (ip_network("10.0.0.0/8"), ip_network("127.0.0.1/32"))


@pytest.fixture
async def proxied(bank_dsn):
    bank = await open_bank(bank_dsn, behind_proxy=True, trusted_proxies=PROXIES)
    sample_app = create_partner_app(bank, operations=[])
    yield sample_app
    await close_app(sample_app)
    await close_bank(bank)


@in_one_bank(
    ("peer", "scheme", "forwarded", "status"),
    [
        ("10.1.1.1", "http", "https", 200),
        ("10.1.1.1", "http", "http", 403),
        ("10.1.1.1", "http", None, 403),
        ("10.1.1.1", "https", "http", 403),
        ("10.1.1.1", "https", None, 200),
        ("192.0.2.1", "http", "https", 403),
        ("192.0.2.1", "https", "http", 200),
    ],
)
async def test_the_scheme_comes_from_the_socket_or_a_trusted_proxy(proxied, peer, scheme, forwarded, status):
    transport = httpx.ASGITransport(proxied, client=(peer, 1))
    async with httpx.AsyncClient(transport=transport, base_url=f"{scheme}://localhost") as sample_client:
        headers = {"x-forwarded-proto": forwarded} if forwarded else {}
        assert (await sample_client.get("/health", headers=headers)).status_code == status


@in_one_bank("hosts", [[], ["localhost", "localhost"], ["localhost", "acme.localhost"]])
async def test_a_request_with_several_host_headers_is_refused(proxied, hosts):
    async def with_hosts(scope, receive, send):
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        named = [(b"host", host.encode()) for host in hosts]
        await proxied({**scope, "headers": [*named, *others]}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(with_hosts), base_url="https://localhost") as client:
        answer = await client.get("/health")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")


@pytest.mark.parametrize(
    ("peer", "forwarded", "sample_client"),
    [
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.7, 10.2.2.2", "198.51.100.7"),
        ("10.0.0.1", "1.1.1.1:1, 198.51.100.7:4711", "198.51.100.7"),
        ("10.0.0.1", "[2001:db8::1]:4711, 10.2.2.2:80", "2001:db8::1"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "10.9.9.9", "10.0.0.1"),
        ("::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7, ::ffff:10.2.2.2", "198.51.100.7"),
        ("::ffff:192.0.2.1", "198.51.100.7", "::ffff:192.0.2.1"),
        ("", "198.51.100.7", ""),
    ],
)
def test_the_client_address_is_the_last_untrusted_forwarded_address(peer, forwarded, sample_client):
    assert client_of(peer, forwarded, PROXIES) == sample_client


@pytest.mark.parametrize(
    ("host", "slug"),
    [
        ("acme.localhost", "acme"),
        ("acme.localhost:8443", "acme"),
        ("acme.localhost.", "acme"),
        ("localhost", None),
        ("a.b.localhost", None),
        (".localhost", None),
        ("acmelocalhost", None),
        ("acme.example.com", None),
        ("", None),
        ("[::1]:8443", None),
    ],
)
def test_the_partner_slug_is_the_label_before_the_domain(host, slug):
    assert slug_of(host, "localhost") == slug


def test_a_host_without_a_partner_label_is_the_local_machine():
    assert all(map(is_bare, ("localhost:1", "127.0.0.1", "[::1]:8443", "[::1]")))
    assert not any(map(is_bare, ("acme.localhost", "127.0.0.2", "localhost.example", "")))
    assert name_of("[::1]:8443") == "[::1]"
