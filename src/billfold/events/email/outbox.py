"""The outbox of e-mails: queued in the transaction of their cause, sent afterwards. `now` is wall time.

Recipient, subject and text are sealed together until the e-mail is sent, and then deleted.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
import structlog
from asyncpg import Record

from billfold.events.email.templates import EmailContent
from billfold.events.email.transports import EmailTransport, MailServerUnavailable, OutboundEmail
from billfold.identity.users.rules import normalize_email
from billfold.ledger.bank import Bank
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.background_work import forget, put_aside
from billfold.platform.database.connection import Db
from billfold.platform.database.shortage import error_summary
from billfold.platform.database.usage_counts import count_usage, hashed_subject
from billfold.platform.errors import Refused

ATTEMPTS_MAX = 8
_BATCH_SIZE = 10

_WRITE = """
INSERT INTO outbound_email (email_id, sealed, created_at, due_at) VALUES ($1, $2, $3, $4)
"""
_AHEAD = timedelta(hours=1)
"""How much earlier a link or a code, for which a person waits, is due than notifications, which may be thousands."""
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
# The e-mail that was tried keeps one attempt at least, and those claimed with it get theirs back. They come before it:
# it may be the reason why the server ends the connection.
_POSTPONE = """
UPDATE outbound_email
   SET due_at = CASE WHEN email_id = $1 THEN least(greatest(due_at, $3::timestamptz + $5), $3 + 10 * $5::interval)
                ELSE $3 END,
       attempts = CASE WHEN email_id = $1 THEN least(attempts, $4) ELSE attempts - 1 END
 WHERE email_id = ANY($2::uuid[])
"""
SERVER_PAUSE = timedelta(minutes=1)
"""Time for which a mail server that did not answer is left alone."""
_MAIL_SERVER = "mail server"
_SENT = """
UPDATE outbound_email SET sent_at = $2, sealed = NULL WHERE email_id = $1
"""


async def queue_email(
    conn: Db, vault: Vault, email: str, notice: EmailContent, *, now: datetime, is_awaited: bool = True
) -> None:
    """Queue an e-mail to an address, ahead of others if a person waits for it."""
    email_id = ids.new()
    subject = " ".join(notice.subject.split())  # a name in it may have line ends
    sealed = _sealed(vault, email_id, email, subject=subject, text=notice.text)
    await conn.execute(_WRITE, email_id, sealed, now, now - _AHEAD if is_awaited else now)


def mailbox_of(vault: Vault, email: str) -> UUID:
    """Return the limit key of a mailbox, independent of case, dots and tags in its address."""
    local, _, domain = normalize_email(email).rpartition("@")
    return hashed_subject(vault, f"{local.partition('+')[0].replace('.', '')}@{domain}", "mailbox")


async def claim_emails(conn: Db, now: datetime) -> Sequence[Record]:
    """Return pending e-mails, at most ten; one that is not marked as sent is claimed again."""
    rows: Sequence[Record] = await conn.fetch(_CLAIM, now, ATTEMPTS_MAX, _BATCH_SIZE)
    return rows


def open_email(row: Record, vault: Vault) -> OutboundEmail:
    """Return a claimed e-mail."""
    content = vault.open(row["sealed"], _associated_data(row["email_id"]))
    recipient, subject, text = msgspec.json.decode(content, type=tuple[str, str, str])
    return OutboundEmail(
        email_id=row["email_id"], recipient=recipient, subject=subject, text=text, written_at=row["created_at"]
    )


async def mark_email_sent(conn: Db, email_id: UUID, now: datetime) -> None:
    """Mark an e-mail as sent. Its content and recipient are deleted."""
    await conn.execute(_SENT, email_id, now)


def _sealed(vault: Vault, email_id: UUID, recipient: str, *, subject: str, text: str) -> bytes:
    return vault.seal(msgspec.json.encode((recipient, subject, text)), _associated_data(email_id))


def _associated_data(email_id: UUID) -> bytes:
    return associated_data("letter", "sealed", email_id, tenant_id=email_id)


log = structlog.get_logger(__name__)


class EmailSender:
    """A periodic task of the worker. E-mails that cannot be sent are retried with growing delays."""

    def __init__(self, mail: EmailTransport, clock: Callable[[], datetime] = wall_now) -> None:
        self._transport = mail
        self._clock = clock

    async def __call__(self, bank: Bank) -> int:
        """Send some e-mails and return how many were sent. A failure does not stop the others.

        If the mail server does not answer, all wait: no e-mail is given up because of it.
        """
        now, sent = self._clock(), 0
        batch = await claim_emails(bank.pool, now)
        for nth, claimed in enumerate(batch):
            email_id = claimed["email_id"]
            try:
                email = open_email(claimed, bank.vault)
                if await self._may_send(bank, email.recipient, is_first=claimed["attempts"] == 1):
                    await self._transport.send(email)
                else:
                    log.warning("email_dropped", email_id=str(email_id), why="limit of its recipient")
            except MailServerUnavailable as error:
                left = [each["email_id"] for each in batch[nth:]]
                log.warning("mail_server_unavailable", waiting=len(left), why=error_summary(error))
                again_at = self._clock() + SERVER_PAUSE
                await bank.pool.execute(_POSTPONE, email_id, left, again_at, ATTEMPTS_MAX - 1, SERVER_PAUSE)
                await put_aside(bank.pool, "email", _MAIL_SERVER, error, now=now, tries=claimed["attempts"])
                break
            except Exception as error:  # noqa: BLE001 - recorded
                log.warning("email_send_failed", email_id=str(email_id), why=error_summary(error))
                await put_aside(bank.pool, "email", str(email_id), error, now=now, tries=claimed["attempts"])
            else:  # an unavailable database is not a failure of the e-mail
                await mark_email_sent(bank.pool, email_id, now)
                await forget(bank.pool, "email", [str(email_id), _MAIL_SERVER])
                sent += 1
        return sent

    async def _may_send(self, bank: Bank, recipient: str, *, is_first: bool) -> bool:
        """Count an e-mail when it is first sent. Tell whether its recipient may get it today."""
        if not is_first:
            return True
        uses = {("emails.recipient", mailbox_of(bank.vault, recipient)): 1}
        try:
            async with bank.pool.acquire() as conn:
                await count_usage(conn, bank.settings.limits, uses, self._clock())
        except Refused:
            return False
        return True
