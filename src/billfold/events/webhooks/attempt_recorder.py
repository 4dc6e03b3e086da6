"""Writes down what resulted from attempts, many in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg

from billfold.events.webhooks import attempts
from billfold.events.webhooks.attempts import FailingSubscription
from billfold.events.webhooks.types import Attempt

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

BATCH_WINDOW_SECONDS = 0.01
"""How long the first of a batch waits for company."""
_ATTEMPTS = 3

OnFailing = Callable[["Connection", FailingSubscription], Awaitable[None]]
"""Told, in the transaction, of a subscription that has begun to fail."""


class AttemptRecorder:
    """Gathers attempts and writes them. Whoever added one can wait until it is on the disk."""

    def __init__(self, pool: Pool, clock: Callable[[], datetime], on_failing: OnFailing | None = None) -> None:
        self._pool = pool
        self._clock = clock
        self._on_failing = on_failing
        self._batch: list[Attempt] = []
        self._write_task: asyncio.Task[None] | None = None

    def add(self, attempt: Attempt) -> asyncio.Task[None]:
        """Take an attempt; what is returned is done when it is written."""
        if self._write_task is None or not self._batch:
            self._write_task = asyncio.create_task(self._write_soon(self._write_task))
        self._batch.append(attempt)
        return self._write_task

    async def _write_soon(self, previous: asyncio.Task[None] | None) -> None:
        await asyncio.sleep(BATCH_WINDOW_SECONDS)
        if previous is not None:
            await asyncio.wait([previous])  # in the order in which they were made
        batch, self._batch = self._batch, []
        for retries_left in reversed(range(_ATTEMPTS)):
            try:
                return await self._write(batch)
            except asyncpg.DeadlockDetectedError:
                # The sequencer moves queues too. One of the two goes first.
                if not retries_left:
                    raise
        return None

    async def _write(self, batch: list[Attempt]) -> None:
        async with self._pool.acquire() as conn, conn.transaction():
            for failing in await attempts.record_attempts(conn, batch, now=self._clock()):
                if self._on_failing is not None:
                    await self._on_failing(conn, failing)
