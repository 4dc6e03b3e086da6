"""What has outlived its use is removed: tokens, codes, requests, proofs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

BATCH_SIZE = 5_000
"""How many rows of one table are removed in one statement."""
USED_CODE_RETENTION = timedelta(days=1)
"""How long a code is remembered after its end: a second use ends what was issued from it."""
_KEYS = {
    "consumed_dpop_proof": "jkt, jti_hash",
    "access_token": "token_hash",
    "refresh_token": "token_hash",
    "authorization_code": "code_hash",
    "oauth_authorization_request": "request_id",
}


async def purge_oauth(conn: Connection | Pool, now: datetime) -> None:
    """Remove what has expired, up to `AT_ONCE` rows of each table; for the worker."""
    for table, key in _KEYS.items():
        cutoff = now - (USED_CODE_RETENTION if "authorization" in table else timedelta(0))
        await conn.execute(
            f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE expires_at < $1 LIMIT $2)",
            cutoff,
            BATCH_SIZE,
        )
    await conn.execute("DELETE FROM signing_key WHERE retires_at < $1", now)
    await conn.execute("DELETE FROM client_key WHERE expires_at < $1", now - USED_CODE_RETENTION)
