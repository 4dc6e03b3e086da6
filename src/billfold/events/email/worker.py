"""The post: sends the letters that wait, and clears away what people have outlived."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from billfold.events.email import outbox as letters
from billfold.events.email.ports import Mail, MailRefused
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

log = structlog.get_logger(__name__)

CLEARED_EVERY = timedelta(minutes=1)


class Post:
    """An errand of the worker. What cannot be sent is tried again later, longer each time."""

    __slots__ = ("_clear_at", "_clock", "_mail")

    def __init__(self, mail: Mail, clock: Callable[[], datetime] = wall_now) -> None:
        self._mail = mail
        self._clock = clock
        self._clear_at = datetime.min.replace(tzinfo=clock().tzinfo)

    async def __call__(self, bank: Bank) -> int:
        """Send some letters and return how many are out."""
        now = self._clock()
        if now >= self._clear_at:
            await letters.purge_people(bank.pool, now)
            self._clear_at = now + CLEARED_EVERY
        sent = 0
        for letter in await letters.claim_letters(bank.pool, bank.vault, now):
            try:
                await self._mail.send(letter)
            except MailRefused as refused:
                log.warning("letter_not_sent", letter_id=str(letter.letter_id), why=str(refused))
                continue
            await letters.note_sent(bank.pool, letter.letter_id, now)
            sent += 1
        return sent
