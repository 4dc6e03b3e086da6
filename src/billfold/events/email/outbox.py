"""E-mails on their way: queued in the transaction of their cause, sent afterwards. `now` is wall time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.events.email.ports import OutboundEmail
from billfold.events.email.templates import EmailContent
from billfold.platform import ids
from billfold.platform.crypto import Vault, associated_data

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

ATTEMPTS_MAX = 8
_BATCH_SIZE = 10

_WRITE = """
INSERT INTO outbound_email (email_id, recipient, subject, sealed, created_at, due_at)
VALUES ($1, $2, $3, $4, $5, $5)
"""
# The next attempt is scheduled before this one, so that another worker repeats it after a crash.
_CLAIM = """
UPDATE outbound_email l
   SET attempts = l.attempts + 1, due_at = $1 + interval '30 seconds' * (2 ^ l.attempts)
  FROM (SELECT email_id FROM outbound_email
         WHERE sent_at IS NULL AND due_at <= $1 AND attempts < $2
         ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
 WHERE l.email_id = due.email_id
RETURNING l.email_id, l.recipient, l.subject, l.sealed, l.created_at
"""


async def queue_email(
    conn: Connection | Pool, vault: Vault, email: str, notice: EmailContent, *, now: datetime
) -> None:
    """Queue an e-mail to an address."""
    email_id = ids.new()
    sealed = vault.seal(notice.text.encode(), _associated_data(email_id))
    await conn.execute(_WRITE, email_id, email, notice.subject, sealed, now)


async def claim_emails(conn: Connection | Pool, vault: Vault, now: datetime) -> list[OutboundEmail]:
    """Return e-mails that wait, at most ten; one that is not noted as sent is claimed again."""
    rows = await conn.fetch(_CLAIM, now, ATTEMPTS_MAX, _BATCH_SIZE)
    return [
        OutboundEmail(
            email_id=row["email_id"],
            recipient=row["recipient"],
            subject=row["subject"],
            text=vault.open(row["sealed"], _associated_data(row["email_id"])).decode(),
            written_at=row["created_at"],
        )
        for row in rows
    ]


async def mark_email_sent(conn: Connection | Pool, email_id: UUID, now: datetime) -> None:
    """Note that an e-mail is out. Its text is kept no longer."""
    await conn.execute("UPDATE outbound_email SET sent_at = $2, sealed = NULL WHERE email_id = $1", email_id, now)


async def purge_users(conn: Connection | Pool, now: datetime) -> int:
    """Delete what has outlived its use: sessions, links, challenges, counts, sent e-mails."""
    removed = 0
    for statement, cutoff in (
        ("DELETE FROM session WHERE ends_at < $1", now),
        ("DELETE FROM passkey_challenge WHERE expires_at < $1", now),
        ("DELETE FROM email_link WHERE expires_at < $1", now - timedelta(days=30)),
        ("DELETE FROM login_attempt WHERE last_failed_at < $1", now - timedelta(days=1)),
        ("DELETE FROM known_device WHERE last_seen_at < $1", now - timedelta(days=180)),
        ("DELETE FROM outbound_email WHERE created_at < $1", now - timedelta(days=30)),
    ):
        removed += int((await conn.execute(statement, cutoff)).split()[-1])
    return removed


def _associated_data(email_id: UUID) -> bytes:
    return associated_data("letter", "sealed", email_id, tenant_id=email_id)
