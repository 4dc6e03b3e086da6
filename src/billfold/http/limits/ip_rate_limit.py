"""The pace of requests that need no token: counted by address, in fixed minutes."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from billfold.http.limits.idempotency import WINDOW_SECONDS, rate_limit_headers
from billfold.http.responses import ProblemWithHeaders
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

PER_MINUTE = 300
_HOME_NETWORK_BITS = 64
_COUNT = """
INSERT INTO rate_limit_window AS w (caller, kind, starts_at, used) VALUES ($1, 'login', $2, 1)
ON CONFLICT (caller, kind, starts_at) DO UPDATE SET used = w.used + 1 RETURNING used
"""


async def count_address(
    conn: Connection | Pool, address: str, now: datetime, *, limit: int = PER_MINUTE
) -> list[tuple[bytes, bytes]]:
    """Count a request from an address and return the headers that say how many are left.

    Raises `rate-limited` beyond `limit` in this minute.
    """
    starts = int(now.timestamp()) // WINDOW_SECONDS * WINDOW_SECONDS
    used: int = await conn.fetchval(_COUNT, command_id("address", _site(address)), datetime.fromtimestamp(starts, UTC))
    headers = rate_limit_headers(limit, max(0, limit - used), starts + WINDOW_SECONDS)
    if used > limit:
        seconds = max(1, starts + WINDOW_SECONDS - int(now.timestamp()))
        raise ProblemWithHeaders(
            "rate-limited",
            f"{limit} requests per minute are let in from one address.",
            (b"retry-after", str(seconds).encode()),
            *headers,
        )
    return headers


def _site(address: str) -> str:
    """Return what counts as one: an IPv4 address, or the /64 that an IPv6 site has to itself."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, _HOME_NETWORK_BITS), strict=False))
    return address
