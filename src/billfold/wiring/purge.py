"""What has outlived its use is removed, a little at a time: keys, tokens, counters, lost files.

What was attempted for a webhook goes too, when it has been shown for as long as is set.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from billfold.access.oauth.purge import purge_oauth
from billfold.access.partners.credentials import purge_identity
from billfold.documents import store as document_store
from billfold.events.webhooks import attempts

if TYPE_CHECKING:
    from billfold.documents.ports import FileStore
    from billfold.platform.database.pool import Pool

AT_ONCE = 5_000
"""How many rows of one table are removed in one statement."""
KEYS_LAST = timedelta(hours=24)
"""How long an idempotency key is remembered, in wall time."""
FILES_LAST = timedelta(days=7)
"""How long a file is kept that no document names: an upload that was cut off, or was replaced."""
WINDOWS_LAST = timedelta(minutes=30)
"""How long counters are kept; those of failed logins are read for a quarter of an hour."""

_PURGES = {
    "request_key": (
        """DELETE FROM request_key WHERE (caller, key) IN
           (SELECT caller, key FROM request_key WHERE claimed_at < $1 LIMIT $2)""",
        KEYS_LAST,
    ),
    "rate_window": (
        """DELETE FROM rate_window WHERE (caller, kind, starts_at) IN
           (SELECT caller, kind, starts_at FROM rate_window WHERE starts_at < $1 LIMIT $2)""",
        WINDOWS_LAST,
    ),
}


async def purge(pool: Pool, wall: datetime, *, attempts_days: int) -> dict[str, int]:
    """Remove what is past its life, up to `AT_ONCE` rows of a busy table; return how many."""
    await purge_identity(pool, wall)
    await purge_oauth(pool, wall)
    removed = {}
    for table, (statement, life) in _PURGES.items():
        answer = await pool.execute(statement, wall - life, AT_ONCE)
        removed[table] = int(answer.split()[-1])
    removed["delivery_attempt"] = await attempts.forget_attempts(
        pool, wall - timedelta(days=attempts_days), limit=AT_ONCE
    )
    return removed


async def sweep_files(pool: Pool, files: FileStore, wall: datetime) -> int:
    """Discard files that no document names, once they are old; return how many.

    A file is kept before its document is written down, so a young one may still get its row.
    """
    old = await files.list_kept(wall - FILES_LAST)
    lost = []
    for start in range(0, len(old), AT_ONCE):
        lost += await document_store.find_unnamed(pool, old[start : start + AT_ONCE])
    for key in lost:
        await files.discard(key)
    return len(lost)
