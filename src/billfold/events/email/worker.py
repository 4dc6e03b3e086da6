"""Sends queued e-mails, and purges expired rows of users."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from billfold.events.email import outbox
from billfold.events.email.ports import EmailRejected, EmailTransport
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

log = structlog.get_logger(__name__)

PURGE_INTERVAL = timedelta(minutes=1)


class EmailSender:
    """A periodic task of the worker. What cannot be sent is tried again later, with growing delays."""

    __slots__ = ("_clock", "_next_purge_at", "_transport")

    def __init__(self, mail: EmailTransport, clock: Callable[[], datetime] = wall_now) -> None:
        self._transport = mail
        self._clock = clock
        self._next_purge_at = datetime.min.replace(tzinfo=clock().tzinfo)

    async def __call__(self, bank: Bank) -> int:
        """Send some e-mails and return how many are out."""
        now = self._clock()
        if now >= self._next_purge_at:
            await outbox.purge_users(bank.pool, now)
            self._next_purge_at = now + PURGE_INTERVAL
        sent = 0
        for outbound_email in await outbox.claim_emails(bank.pool, bank.vault, now):
            try:
                await self._transport.send(outbound_email)
            except EmailRejected as error:
                log.warning("email_send_failed", email_id=str(outbound_email.email_id), why=str(error))
                continue
            await outbox.mark_email_sent(bank.pool, outbound_email.email_id, now)
            sent += 1
        return sent
