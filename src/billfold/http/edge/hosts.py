"""Which partner a host name stands for, and from where a request comes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address

BARE = frozenset({"localhost", "127.0.0.1", "[::1]"})


def name_of(host: str) -> str:
    """Return a host without its port: `[::1]:8443` is `[::1]`."""
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def slug_of(host: str, domain: str) -> str | None:
    """Return the partner's label of `{slug}.{domain}`, or None when there is none."""
    name = name_of(host).removesuffix(".")
    suffix = f".{domain}"
    if not name.endswith(suffix):
        return None
    slug = name.removesuffix(suffix)
    return slug if slug and "." not in slug else None


def is_bare(host: str) -> bool:
    """Tell whether a host is this machine and no partner's name."""
    return name_of(host) in BARE


@lru_cache(4096)
def is_trusted(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Tell whether an address belongs to a proxy whose forwarded headers are believed."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def client_of(peer: str, forwarded_for: str | None, networks: Sequence[IPv4Network | IPv6Network]) -> str:
    """Return who called: the last address on the way that is not a trusted proxy's."""
    if forwarded_for is None or not is_trusted(peer, networks):
        return peer
    for address in reversed([each.strip() for each in forwarded_for.split(",")]):
        if not is_trusted(address, networks):
            return address
    return peer
