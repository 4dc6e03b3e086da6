"""Sends queued e-mails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog

from billfold.events.email import outbox
from billfold.events.email.ports import EmailTransport
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.failed_work import forget, put_aside
from billfold.platform.database.shortage import error_summary

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
                await self._transport.send(outbox.open_email(claimed, bank.vault))
            except Exception as error:  # noqa: BLE001 - recorded
                log.warning("email_send_failed", email_id=str(email_id), why=error_summary(error))
                await put_aside(bank.pool, "email", str(email_id), error, now=now, tries=claimed["attempts"])
            else:  # a database that does not answer here is no failure of the e-mail
                await outbox.mark_email_sent(bank.pool, email_id, now)
                await forget(bank.pool, "email", [str(email_id)])
                sent += 1
        return sent
