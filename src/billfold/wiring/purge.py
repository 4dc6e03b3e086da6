"""Removes expired rows in small batches: idempotency keys, tokens, counters, orphan files.

Webhook delivery attempts go after the configured number of days.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

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

ASSERTION_RETENTION = timedelta(minutes=1)
"""How long a used assertion is remembered after its end: longer than the skew it is granted."""
USED_CODE_RETENTION = timedelta(days=1)
"""How long a code is remembered after its end: a second use ends what was issued from it."""
_NONE = timedelta(0)

_EXPIRED_ROWS = {
    "idempotency_key": ("caller, key", "claimed_at", IDEMPOTENCY_KEY_RETENTION),
    "rate_limit_window": ("caller, kind, starts_at", "starts_at", RATE_WINDOW_RETENTION),
    "partner_token": ("token_hash", "expires_at", _NONE),
    "consumed_assertion": ("issuer, jti_hash", "expires_at", ASSERTION_RETENTION),
    "consumed_dpop_proof": ("jkt, jti_hash", "expires_at", _NONE),
    "access_token": ("token_hash", "expires_at", _NONE),
    "refresh_token": ("token_hash", "expires_at", _NONE),
    "authorization_code": ("code_hash", "expires_at", USED_CODE_RETENTION),
    "oauth_authorization_request": ("request_id", "expires_at", USED_CODE_RETENTION),
    "signing_key": ("key_id", "retires_at", _NONE),
    "client_key": ("client_id, key_id", "expires_at", USED_CODE_RETENTION),
}
"""Table -> its key, the column of an instant, and how long after that instant a row is kept."""
_PURGE = "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {column} < $1 LIMIT $2)"


async def purge(pool: Pool, wall: datetime, *, attempts_days: int) -> dict[str, int]:
    """Remove expired rows, up to `ROWS_PER_STATEMENT` of each table; return how many."""
    removed = {}
    for table, (key, column, retention) in _EXPIRED_ROWS.items():
        statement = _PURGE.format(table=table, key=key, column=column)
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
