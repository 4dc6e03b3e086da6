"""The mail server: it refuses e-mails, stalls, hangs up, or takes one and is not heard."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any
from uuid import UUID

from billfold.events.email.transports import EmailRejected, MailServerUnavailable, OutboundEmail
from billfold.wiring import scheduled_jobs
from simulation.counterparties.poison import LOST_MAILBOX
from simulation.faults import Faults
from simulation.oracles import require

STALL_SECONDS = 20.0
"""As long as the bank waits for a mail server."""


class MailServer:
    """Takes what every worker of this process sends, but for one mailbox: its e-mails are set `apart`."""

    def __init__(self, random: Random, faults: Faults, apart: set[UUID]) -> None:
        self._random, self._faults, self._apart = random, faults, apart
        self._taken: set[UUID] = set()
        wiring: Any = scheduled_jobs
        wiring.email_transport_of = lambda _: self

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Take an e-mail. Raises EmailRejected."""
        await asyncio.sleep(self._random.random() * 0.1)
        if outbound_email.recipient.lower() == LOST_MAILBOX:
            self._apart.add(outbound_email.email_id)
            raise EmailRejected("550 no such mailbox")
        if self._strikes("mail refused"):
            raise EmailRejected("451 try again later")
        if self._strikes("mail stalled"):
            await asyncio.sleep(STALL_SECONDS)
            raise MailServerUnavailable("timed out")
        if self._strikes("mail hung up"):
            raise MailServerUnavailable("connection unexpectedly closed")
        self._taken.add(outbound_email.email_id)
        if self._strikes("mail answer lost"):
            raise MailServerUnavailable("connection unexpectedly closed")

    def _strikes(self, fault: str) -> bool:
        struck = self._random.random() < self._faults.rate
        self._faults.happened[fault] += struck
        return struck

    async def check(self, conn: Any) -> None:
        """Check that every e-mail which counts as sent has arrived at least once."""
        sent = await conn.fetch("SELECT email_id FROM outbound_email WHERE sent_at IS NOT NULL")
        lost = [row["email_id"] for row in sent if row["email_id"] not in self._taken]
        require(not lost, f"of {len(sent)} e-mails {len(lost)} have not arrived: {lost[:3]}")
