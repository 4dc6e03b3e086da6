"""Networks of addresses: which addresses count as one caller for limits."""

from ipaddress import IPv6Address, ip_address, ip_network

_SITE_BITS = 64


def network_of(address: str) -> str:
    """Return the network that counts as one caller: an IPv4 address, or the /64 of an IPv6 site.

    An IPv4 address inside an IPv6 one (::ffff:192.0.2.1) counts as that IPv4 address. Other texts are unchanged.
    """
    try:
        parsed = ip_address(without_port(address).partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, _SITE_BITS), strict=False))


def without_port(text: str) -> str:
    """Return the address in the forms that some proxies write: 192.0.2.1:4711, [2001:db8::1]:4711, [2001:db8::1]."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def own_url_host(listening_on: str) -> str:
    """Return the host of a URL by which this machine reaches a listening address: `[::1]` for `::`."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listening_on, listening_on)  # noqa: S104 - read, not listened on
    return f"[{own}]" if ":" in own else own
