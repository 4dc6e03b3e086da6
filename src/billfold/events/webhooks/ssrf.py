"""Checks addresses that others give us to call: which are public, and which lead to internal networks.

A name is resolved once, every address it has is checked, and the call goes to one of those
addresses: a later change of the name has no effect (security.md C1).
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiodns

from billfold.platform.settings.kinds import Network, is_dns_label

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host as texts. Raises OSError when it has none."""

PORTS = {"https": 443, "http": 80}
PUBLIC_PORTS = frozenset({443, 8443})
URL_CHARS_MAX = 2083
_NAME_CHARS_MAX = 253
LOOKUP_SECONDS = 4.0
"""Timeout of a DNS lookup."""

# The only part of the IPv6 space that is allocated, and those of its ranges that lead elsewhere: protocol
# assignments with Teredo, documentation twice, 6to4.
_UNICAST_6 = ipaddress.IPv6Network("2000::/3")
_NON_PUBLIC_6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_NON_PUBLIC_4 = tuple(
    map(ipaddress.IPv4Network, ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/3"))
)


class ForbiddenAddress(ValueError):
    """An address that must not be called; the text gives its owner the reason."""


class NoSuchHost(OSError):
    """The name has no address now. It may have one later."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed url: the address to connect to, the path to request, and the name of the host."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return the host as a Host header gives it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(url: str) -> Target:
    """Return the target of a url. Raises NotOutside if it must not be called."""
    if not 0 < len(url) <= URL_CHARS_MAX:
        raise ForbiddenAddress(f"must have 1 to {URL_CHARS_MAX} characters")
    if not url.isascii() or not url.isprintable() or any(char in url for char in ' \\"<>^`{|}'):
        raise ForbiddenAddress("must be a URL in ASCII, without spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").removesuffix(".")
    except ValueError:
        raise ForbiddenAddress("must be a URL like https://example.com/webhooks") from None
    if parts.scheme not in PORTS or not host:
        raise ForbiddenAddress("must be a URL like https://example.com/webhooks")
    if "@" in parts.netloc or parts.fragment:
        raise ForbiddenAddress("must have no user, no password and no fragment")
    _check_host(host, parts.netloc)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, PORTS[parts.scheme] if port is None else port, path=path)


def is_public(address: IpAddress) -> bool:
    """Tell whether an address belongs to the public internet, however it is spelled."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not any(address in networks for networks in _NON_PUBLIC_4)
    return address in _UNICAST_6 and address.is_global and not any(address in networks for networks in _NON_PUBLIC_6)


async def resolve_allowed(
    target: Target, *, allowed: Sequence[Network] = (), resolve: Resolver | None = None
) -> tuple[str, ...]:
    """Return the addresses of a target, all of which may be called.

    `allowed` are internal networks that may be called too; only there plain http and other ports
    are accepted. Raises NotOutside if any of its addresses must not be called, NoSuchHost.
    """
    if _is_address(target.host):
        resolved: Sequence[str] = [target.host]
    else:
        try:
            resolved = await (resolve or resolve_host)(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise NoSuchHost(f"{target.host} has no address") from error
    addresses = [_unmapped(text) for text in resolved]
    if not addresses:
        raise NoSuchHost(f"{target.host} has no address")
    networks = all(any(a.version == n.version and a in n for n in allowed) for a in addresses)
    if not networks:
        check_public_form(target)
        if not all(map(is_public, addresses)):
            raise ForbiddenAddress("must lead to a public address")
    return tuple(map(str, addresses))


def check_public_form(target: Target) -> None:
    """Refuse targets that are never called on the internet. Raises NotOutside."""
    if target.scheme != "https":
        raise ForbiddenAddress("must begin with https://")
    if target.port not in PUBLIC_PORTS:
        raise ForbiddenAddress("must be on port 443 or 8443")


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the hosts file or the name servers have for a host. Raises OSError.

    It does not block a thread: unavailable name servers delay no other lookup and no other work.
    """
    try:
        async with asyncio.timeout(LOOKUP_SECONDS), aiodns.DNSResolver() as resolver:
            found = await resolver.getaddrinfo(host, port=port, type=socket.SOCK_STREAM)
    except aiodns.error.DNSError as error:
        raise OSError(str(error)) from error
    return [node.addr[0].decode() for node in found.nodes]


def _unmapped(text: str) -> IpAddress:
    """Return an address; an IPv4 address in IPv6 form is returned as IPv4."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _check_host(host: str, written: str) -> None:
    """Refuse a host that is neither an address in its usual spelling nor a valid DNS name."""
    spelled = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^\[\]]+?)\.?(:\d*)?", written.lower())
    labels = host.split(".")
    is_name = len(host) <= _NAME_CHARS_MAX and all(is_dns_label(each.replace("_", "a")) for each in labels)
    # A name that ends in a number is an address in some old spelling: octal, hex, or in fewer parts.
    is_name = is_name and not labels[-1].isdigit() and not labels[-1].startswith("0x")
    # A zone, as in fe80::1%eth0, names an interface of this machine.
    if spelled is None or "%" in host or not (is_name or _is_address(host)):
        raise ForbiddenAddress("must name a host as DNS does, or give its address")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
