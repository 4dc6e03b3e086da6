"""Sends queued e-mails."""

from collections.abc import Callable
from datetime import datetime

import structlog

from billfold.events.email import outbox
from billfold.events.email.ports import EmailTransport
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.failed_work import forget, put_aside
from billfold.platform.database.shortage import error_summary
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.errors import Refused

log = structlog.get_logger(__name__)


class EmailSender:
    """A periodic task of the worker. What cannot be sent is tried again later, with growing delays."""

    __slots__ = ("_clock", "_transport")

    def __init__(self, mail: EmailTransport, clock: Callable[[], datetime] = wall_now) -> None:
        self._transport = mail
        self._clock = clock

    async def __call__(self, bank: Bank) -> int:
        """Send some e-mails and return how many are out. One that fails keeps no other from it."""
        now, sent = self._clock(), 0
        for claimed in await outbox.claim_emails(bank.pool, now):
            email_id = claimed["email_id"]
            try:
                email = outbox.open_email(claimed, bank.vault)
                if await self._may_send(bank, email.recipient, is_first=claimed["attempts"] == 1):
                    await self._transport.send(email)
                else:
                    log.warning("email_dropped", email_id=str(email_id), why="limit of its recipient")
            except Exception as error:  # noqa: BLE001 - recorded
                log.warning("email_send_failed", email_id=str(email_id), why=error_summary(error))
                await put_aside(bank.pool, "email", str(email_id), error, now=now, tries=claimed["attempts"])
            else:  # a database that does not answer here is no failure of the e-mail
                await outbox.mark_email_sent(bank.pool, email_id, now)
                await forget(bank.pool, "email", [str(email_id)])
                sent += 1
        return sent

    async def _may_send(self, bank: Bank, recipient: str, *, is_first: bool) -> bool:
        """Count an e-mail when it is sent first. Tell whether its recipient may get it today."""
        if not is_first:
            return True
        uses = {("emails.recipient", outbox.mailbox_of(bank.vault, recipient)): 1}
        try:
            async with bank.pool.acquire() as conn:
                await count_usage(conn, bank.settings.limits, uses, self._clock())
        except Refused:
            return False
        return True
