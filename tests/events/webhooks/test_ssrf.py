"""Webhook addresses: every spelling of an internal address is refused."""

from ipaddress import ip_address, ip_network

import pytest

from billfold.events.webhooks.ssrf import (
    ForbiddenAddress,
    NoSuchHost,
    Target,
    is_public,
    parse_target,
    resolve_allowed,
)

INSIDE_TEXT = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254
172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1
198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1
2001::1 2001:0:53aa::1 2001:2::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 4000::1
5f00::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1 ff0e::1
"""
INSIDE = INSIDE_TEXT.split()
OUTSIDE_TEXT = "1.1.1.1 8.8.8.8 100.63.255.255 172.32.0.1 2606:4700::1111 2a00:1450::1 2400::1"

# What a browser, curl or libc takes for 127.0.0.1, and what no DNS name looks like.
TRICKS = [
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://017700000001/",
    "https://2130706433/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.0x1/",
    "https://\u2460.0.0.1/",
    "https://127\u30020.0.1/",
    "https://local\uff48ost/",
    "https://a b.example/",
    "https://user@example.com/",
    "https://user:pw@example.com/",
    "https://example.com@127.0.0.1/",
    "https://example.com\\@127.0.0.1/",
    "https://exam\tple.com/",
    "https://example.com/\n",
    "https://example.com/#there",
    "https://-a.example/",
    "https://a..example/",
    "https:///path",
    "https://[::1/",
    "https://example.com:99999/",
    "https://example.com:port/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "example.com",
    "//example.com/",
    "",
    "https://%31%32%37.0.0.1/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[2606:4700::1111%25eth0]/",
    "https://[::ffff:127.0.0.1%25lo]/",
    "https://[v1.a]/",
    "https://[2606:4700::1111]x/",
    "https://[a.example]/",
    "https://127.0.0.1../",
    f"https://{'a' * 64}.example/",
    f"https://example.com/{'a' * 2083}",
]


def resolving(*addresses):
    async def resolve(_host, _port):
        return addresses

    return resolve


def test_public_addresses_are_recognized():
    assert [text for text in INSIDE if is_public(ip_address(text))] == []
    assert [text for text in OUTSIDE_TEXT.split() if not is_public(ip_address(text))] == []


@pytest.mark.parametrize("url", TRICKS)
def test_a_url_with_credentials_or_odd_syntax_is_refused(url):
    with pytest.raises(ForbiddenAddress):
        parse_target(url)


def test_a_url_is_parsed_into_its_parts():
    target = parse_target("HTTPS://Hooks.Example.COM.:8443/a/b?c=d&e")
    assert target == Target("https", "hooks.example.com", 8443, path="/a/b?c=d&e")
    assert target.authority == "hooks.example.com:8443"
    assert parse_target("https://example.com").path == "/"
    assert parse_target("https://[2606:4700::1111]:443/").authority == "[2606:4700::1111]"


async def test_a_host_with_any_private_address_is_refused():
    target = parse_target("https://a.example/")
    assert await resolve_allowed(target, resolve=resolving("8.8.8.8")) == ("8.8.8.8",)
    for address in [*INSIDE, "::ffff:10.0.0.1", "fe80::1%eth0"]:
        with pytest.raises(ForbiddenAddress):
            await resolve_allowed(target, resolve=resolving("8.8.8.8", address))


@pytest.mark.parametrize("address", INSIDE)
async def test_a_private_address_is_refused_without_a_name_server(address):
    async def resolve(_host, _port):
        raise OSError

    target = parse_target(f"https://[{address}]/" if ":" in address else f"https://{address}/")
    with pytest.raises(ForbiddenAddress):
        await resolve_allowed(target, resolve=resolve)


LOOPBACK = [ip_network("127.0.0.0/8"), ip_network("::1/128")]


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        *((url, ["8.8.8.8"]) for url in ("http://a.example/", "https://a.example:444/", "https://a.example:22/")),
        ("http://a.example:3000/", ["127.0.0.1", "10.0.0.1"]),
        ("http://a.example/", ["127.0.0.1", "8.8.8.8"]),
    ],
)
async def test_plain_http_and_nonstandard_ports_are_refused_outside_allowed_networks(url, addresses):
    with pytest.raises(ForbiddenAddress):
        await resolve_allowed(parse_target(url), allowed=LOOPBACK, resolve=resolving(*addresses))


@pytest.mark.parametrize("addresses", [["127.0.0.1", "::1"], ["::ffff:127.0.0.1"]])
async def test_allowed_networks_accept_any_scheme_and_port(addresses):
    target = parse_target("http://a.example:3000/")
    found = await resolve_allowed(target, allowed=LOOPBACK, resolve=resolving(*addresses))
    assert found == tuple(address.removeprefix("::ffff:") for address in addresses)


async def test_a_host_without_an_address_raises_no_such_host():
    async def resolve(_host, _port):
        raise OSError

    for resolved in (resolve, resolving()):
        with pytest.raises(NoSuchHost):
            await resolve_allowed(parse_target("https://a.example/"), resolve=resolved)
