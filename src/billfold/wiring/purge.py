"""Removes expired rows in small batches: idempotency keys, tokens, counters, orphan files.

Webhook delivery attempts go after the configured number of days.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from billfold.access.oauth.purge import purge_oauth
from billfold.access.partners.credentials import purge_partner_credentials
from billfold.documents import store as document_store
from billfold.events.webhooks import attempts

if TYPE_CHECKING:
    from billfold.documents.ports import FileStore
    from billfold.platform.database.pool import Pool

ROWS_PER_STATEMENT = 5_000
"""How many rows of one table are removed in one statement."""
IDEMPOTENCY_KEY_RETENTION = timedelta(hours=24)
"""How long an idempotency key is remembered, in wall time."""
ORPHAN_FILE_RETENTION = timedelta(days=7)
"""How long a file is kept that no document names: an upload that was cut off, or was replaced."""
RATE_WINDOW_RETENTION = timedelta(minutes=30)
"""How long counters are kept; those of failed logins are read for a quarter of an hour."""

_EXPIRED_ROWS = {
    "idempotency_key": (
        """DELETE FROM idempotency_key WHERE (caller, key) IN
           (SELECT caller, key FROM idempotency_key WHERE claimed_at < $1 LIMIT $2)""",
        IDEMPOTENCY_KEY_RETENTION,
    ),
    "rate_limit_window": (
        """DELETE FROM rate_limit_window WHERE (caller, kind, starts_at) IN
           (SELECT caller, kind, starts_at FROM rate_limit_window WHERE starts_at < $1 LIMIT $2)""",
        RATE_WINDOW_RETENTION,
    ),
}


async def purge(pool: Pool, wall: datetime, *, attempts_days: int) -> dict[str, int]:
    """Remove what is past its life, up to `AT_ONCE` rows of a busy table; return how many."""
    await purge_partner_credentials(pool, wall)
    await purge_oauth(pool, wall)
    removed = {}
    for table, (statement, retention) in _EXPIRED_ROWS.items():
        answer = await pool.execute(statement, wall - retention, ROWS_PER_STATEMENT)
        removed[table] = int(answer.split()[-1])
    removed["delivery_attempt"] = await attempts.purge_attempts(
        pool, wall - timedelta(days=attempts_days), limit=ROWS_PER_STATEMENT
    )
    return removed


async def delete_orphan_files(pool: Pool, files: FileStore, wall: datetime) -> int:
    """Discard files that no document names, once they are old; return how many.

    A file is kept before its document is written down, so a young one may still get its row.
    """
    old = await files.list_stored(wall - ORPHAN_FILE_RETENTION)
    orphans = []
    for start in range(0, len(old), ROWS_PER_STATEMENT):
        orphans += await document_store.find_orphaned_files(pool, old[start : start + ROWS_PER_STATEMENT])
    for key in orphans:
        await files.discard(key)
    return len(orphans)
