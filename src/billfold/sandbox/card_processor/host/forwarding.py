"""Sends the bank what it must get: stand-in approvals, reversals and advices, until it acknowledges each."""

import asyncio
from functools import partial
from typing import Final

from billfold.payments.cards.authorizations.types import Decision
from billfold.platform.clock import wall_now
from billfold.platform.logs import logger
from billfold.sandbox.card_processor.host import journal
from billfold.sandbox.card_processor.host.bank_client import BankAway, BankClient, MessageRefused
from billfold.sandbox.card_processor.host.journal import Journal, Owed

log = logger(__name__)

_AT_A_TIME: Final = 20
_ANSWER_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 1.0
_PAUSE_MAX_SECONDS: Final = 30


class Forwarder:
    """Store and forward: what is stored is sent in order, of each purchase one message after the other."""

    def __init__(self, store: Journal, bank: BankClient) -> None:
        self._journal, self._bank = store, bank
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look at once whether there is something to send."""
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            self._wake.clear()
            now = wall_now().timestamp()
            due = await self._journal.call(partial(journal.due_messages, now=now, limit=_AT_A_TIME))
            for owed in due:
                if not await self._send(owed):
                    break  # the bank is away; the others wait with it
            else:
                if due:
                    continue
            try:
                await asyncio.wait_for(self._wake.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue

    async def _send(self, owed: Owed) -> bool:
        """Send one message; tell whether the bank answered."""
        refusal = None
        try:
            answer = await self._bank.send(owed.body, _ANSWER_SECONDS)
            if answer.decision == Decision.DECLINED:
                refusal = answer.reason
        except BankAway as away:
            pause = min(2**owed.attempts, _PAUSE_MAX_SECONDS)
            log.warning("owed_message_waits", reason=str(away), attempts=owed.attempts + 1)
            due_at = wall_now().timestamp() + pause
            await self._journal.call(lambda vault: journal.postpone_owed(vault, owed.n, due_at))
            return False
        except MessageRefused as error:
            refusal = str(error)
        if refusal is not None:
            log.warning("owed_message_refused", n=owed.n, reason=refusal)
        await self._journal.call(lambda vault: journal.settle_owed(vault, owed.n, refusal=refusal))
        return True
