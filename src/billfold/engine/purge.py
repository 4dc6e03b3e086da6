"""What has outlived its use is removed, a little at a time: keys, tokens, counters of requests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.kit.db import Pool

AT_ONCE = 5_000
"""How many rows of one table are removed in one statement."""
KEYS_LAST = timedelta(hours=24)
"""How long an idempotency key is remembered, in wall time."""
WINDOWS_LAST = timedelta(minutes=5)
"""How long the counters of a minute are kept; only those of the running one are read."""

_PURGES = {
    "request_key": (
        "DELETE FROM request_key WHERE (caller, key) IN"
        " (SELECT caller, key FROM request_key WHERE claimed_at < $1 LIMIT $2)",
        KEYS_LAST,
    ),
    "used_assertion": (
        "DELETE FROM used_assertion WHERE (issuer, jti_hash) IN"
        " (SELECT issuer, jti_hash FROM used_assertion WHERE expires_at < $1 LIMIT $2)",
        timedelta(0),
    ),
    "partner_token": (
        "DELETE FROM partner_token WHERE token_hash IN"
        " (SELECT token_hash FROM partner_token WHERE expires_at < $1 LIMIT $2)",
        timedelta(0),
    ),
    "rate_window": (
        "DELETE FROM rate_window WHERE (caller, kind, starts_at) IN"
        " (SELECT caller, kind, starts_at FROM rate_window WHERE starts_at < $1 LIMIT $2)",
        WINDOWS_LAST,
    ),
}


async def purge(pool: Pool, wall: datetime) -> dict[str, int]:
    """Remove up to `AT_ONCE` rows of each table that are past their life; return how many."""
    removed = {}
    for table, (statement, life) in _PURGES.items():
        answer = await pool.execute(statement, wall - life, AT_ONCE)
        removed[table] = int(answer.split()[-1])
    return removed
