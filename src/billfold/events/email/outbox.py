"""E-mails on their way: queued in the transaction of their cause, sent afterwards. `now` is wall time.

Recipient, subject and text are sealed together until the e-mail is sent, and forgotten then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.identity.users.rules import normalize_email
from billfold.events.email.ports import OutboundEmail
from billfold.events.email.templates import EmailContent
from billfold.platform import ids
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.usage_counts import hashed_subject

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.connection import (Connection, Pool)

ATTEMPTS_MAX = 8
_BATCH_SIZE = 10

_WRITE = """
INSERT INTO outbound_email (email_id, sealed, created_at, due_at) VALUES ($1, $2, $3, $3)
"""
# The next attempt is scheduled before this one, so that another worker repeats it after a crash.
_CLAIM = """
UPDATE outbound_email l
   SET attempts = l.attempts + 1, due_at = $1 + interval '30 seconds' * (2 ^ l.attempts)
  FROM (SELECT email_id FROM outbound_email
         WHERE sent_at IS NULL AND due_at <= $1 AND attempts < $2
         ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
 WHERE l.email_id = due.email_id
RETURNING l.email_id, l.sealed, l.created_at, l.attempts
"""
_SENT = """
UPDATE outbound_email SET sent_at = $2, sealed = NULL WHERE email_id = $1
"""


async def queue_email(
    conn: Connection | Pool, vault: Vault, email: str, notice: EmailContent, *, now: datetime
) -> None:
    """Queue an e-mail to an address."""
    email_id = ids.new()
    subject = " ".join(notice.subject.split())  # a name in it may have line ends
    sealed = _sealed(vault, email_id, email, subject=subject, text=notice.text)
    await conn.execute(_WRITE, email_id, sealed, now)


def mailbox_of(vault: Vault, email: str) -> UUID:
    """Return what stands for a mailbox in limits, however its address is written: case, points, tags."""
    local, _, domain = normalize_email(email).rpartition("@")
    return hashed_subject(vault, f"{local.partition('+')[0].replace('.', '')}@{domain}", "mailbox")


async def claim_emails(conn: Connection | Pool, now: datetime) -> Sequence[Record]:
    """Return e-mails that wait, at most ten; one that is not noted as sent is claimed again."""
    rows: Sequence[Record] = await conn.fetch(_CLAIM, now, ATTEMPTS_MAX, _BATCH_SIZE)
    return rows


def open_email(row: Record, vault: Vault) -> OutboundEmail:
    """Return a claimed e-mail."""
    content = vault.open(row["sealed"], _associated_data(row["email_id"]))
    recipient, subject, text = msgspec.json.decode(content, type=tuple[str, str, str])
    return OutboundEmail(
        email_id=row["email_id"], recipient=recipient, subject=subject, text=text, written_at=row["created_at"]
    )


async def mark_email_sent(conn: Connection | Pool, email_id: UUID, now: datetime) -> None:
    """Note that an e-mail is out. What it said, and to whom, is kept no longer."""
    await conn.execute(_SENT, email_id, now)


def _sealed(vault: Vault, email_id: UUID, recipient: str, *, subject: str, text: str) -> bytes:
    return vault.seal(msgspec.json.encode((recipient, subject, text)), _associated_data(email_id))


def _associated_data(email_id: UUID) -> bytes:
    return associated_data("letter", "sealed", email_id, tenant_id=email_id)
