"""Removes expired rows in small batches: idempotency keys, tokens, counters, sessions, e-mails, orphan files.

Webhook delivery attempts, logged requests and what daily roots are proven with go after the configured numbers of days.
"""

from datetime import datetime, timedelta

from billfold.documents import store as document_store
from billfold.documents.ports import FileStore
from billfold.events.webhooks import attempts
from billfold.platform.database.connection import Pool
from billfold.platform.database.failed_work import read_put_aside
from billfold.reports import downloads as download_store
from billfold.reports.proofs.roots import store as root_store
from billfold.request_log import store as request_store

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
LOGIN_ATTEMPT_RETENTION = timedelta(days=1)
DEVICE_RETENTION = timedelta(days=180)
EMAIL_RETENTION = timedelta(days=30)
"""How long e-mails are kept, and after its end what they led to."""
LINKING_EXCHANGE_RETENTION = timedelta(days=1)
"""How long a link is kept whose accounts were not added: longer than a request is repeated."""
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
    "session": ("session_hash", "ends_at", _NONE),
    "passkey_challenge": ("challenge", "expires_at", _NONE),
    "login_attempt": ("subject, factor", "last_failed_at", LOGIN_ATTEMPT_RETENTION),
    "known_device": ("user_id, device_hash", "last_seen_at", DEVICE_RETENTION),
    "email_link": ("link_hash", "expires_at", EMAIL_RETENTION),
    "earlier_link": ("link_hash", "expires_at", _NONE),
    "invitation": ("member_id", "link_expires_at", EMAIL_RETENTION),
    "invite_session": ("session_hash", "ends_at", _NONE),
    "usage_count": ("subject, kind", "expires_at", _NONE),
    "outbound_email": ("email_id", "created_at", EMAIL_RETENTION),
    "linking_exchange": ("customer_id, exchange_id", "exchanged_at", LINKING_EXCHANGE_RETENTION),
    "failed_work": ("kind, item", "failed_at", EMAIL_RETENTION),
}
"""Table -> its key, the column of an instant, and how long after that instant a row is kept."""
_PURGE = "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {column} < $1 LIMIT $2)"


async def purge(pool: Pool, wall: datetime, *, attempts_days: int, requests_days: int) -> dict[str, int]:
    """Remove all expired rows, `ROWS_PER_STATEMENT` at a time; return how many of each table.

    A table for which it fails does not keep the others from it.
    """
    removed: dict[str, int] = {}
    failed: dict[str, Exception] = {}
    aside = await read_put_aside(pool, "purge", wall)
    for table, (key, column, retention) in _EXPIRED_ROWS.items():
        statement = _PURGE.format(table=table, key=key, column=column)
        try:
            removed[table] = await _purge_table(pool, statement, wall - retention)
        except Exception as error:  # noqa: BLE001 - recorded
            failed[table] = error
    removed["delivery_attempt"] = await attempts.purge_attempts(
        pool, wall - timedelta(days=attempts_days), limit=ROWS_PER_STATEMENT
    )
    removed["request_log"] = await request_store.purge_requests(
        pool, wall - timedelta(days=requests_days), limit=ROWS_PER_STATEMENT
    )
    await aside.record(pool, failed, wall)
    return removed


async def purge_daily_proofs(pool: Pool, now: datetime, *, days: int) -> int:
    """Remove the pages of daily roots that are older, in business time; return how many."""
    return await root_store.purge_pages(pool, now, timedelta(days=days), limit=ROWS_PER_STATEMENT)


async def _purge_table(pool: Pool, statement: str, before: datetime) -> int:
    removed = 0
    while True:
        answer = await pool.execute(statement, before, ROWS_PER_STATEMENT)
        last = int(answer.split()[-1])
        removed += last
        if last < ROWS_PER_STATEMENT:
            return removed


async def delete_orphan_files(pool: Pool, files: FileStore, wall: datetime) -> int:
    """Discard files that neither a document nor a report names, once they are old; return how many.

    A file is kept before its document is written down, so a young one may still get its row.
    """
    old = await files.list_stored(wall - ORPHAN_FILE_RETENTION)
    orphans = []
    for start in range(0, len(old), ROWS_PER_STATEMENT):
        of_no_document = await document_store.find_orphaned_files(pool, old[start : start + ROWS_PER_STATEMENT])
        orphans += await download_store.find_orphaned_parts(pool, of_no_document)
    for key in orphans:
        await files.discard(key)
    return len(orphans)
