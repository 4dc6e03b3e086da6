"""A receiver of webhooks, in place of the dispatcher's HTTP client."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec

from billfold.events.webhooks.http_client import WebhookResponse
from billfold.wiring import scheduled_jobs
from simulation.counterparties.poison import DEAF_HOOK
from simulation.faults import Faults
from simulation.oracles import Receiver

QUICK_SECONDS, SLOW_SECONDS = 0.02, 30.0
"""The longest that it takes mostly, and when it is slow: longer than a dispatcher waits."""


class Deaf:
    """A receiver that takes nothing."""

    async def disconnect(self) -> None:
        """Nothing is open."""

    async def post(self, *_: object) -> WebhookResponse:
        """Refuse an event."""
        return WebhookResponse(code=500, message="Internal Server Error")


class Hooks:
    """Receives what every dispatcher of this process sends."""

    def __init__(self, random: Random, faults: Faults) -> None:
        self._random, self._faults = random, faults
        self.receiver = Receiver()
        wiring: Any = scheduled_jobs
        wiring.webhook_client_of = lambda _: self

    def connection(self, url: str) -> Hooks | Deaf:
        """Return a connection to a url."""
        return Deaf() if url == DEAF_HOOK else self

    async def disconnect(self) -> None:
        """Nothing is open."""

    async def post(self, headers: Any, body: bytes) -> WebhookResponse:
        """Receive an event; the receiver may be slow, refuse it, or take it and not be heard."""
        is_slow = self._random.random() < self._faults.rate
        self._faults.happened["webhook slow"] += is_slow
        await asyncio.sleep(self._random.random() * (SLOW_SECONDS if is_slow else QUICK_SECONDS))
        luck, event = self._random.random() / 3, msgspec.json.decode(body)
        if luck < self._faults.rate:
            self._faults.happened["webhook refused"] += 1
            self.receiver.refuse(event)
            return WebhookResponse(code=500, message="Internal Server Error")
        self.receiver.receive(event)
        if luck < 2 * self._faults.rate:
            self._faults.happened["webhook answer lost"] += 1
            return WebhookResponse(code=0, message="no answer in time")
        return WebhookResponse(code=204, message="No Content")
