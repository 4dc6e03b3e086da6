"""Writes down what came of attempts, many in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg

from billfold.events.webhooks import attempts
from billfold.events.webhooks.attempts import Failing
from billfold.events.webhooks.types import Attempt

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

LINGER_SECONDS = 0.01
"""How long the first of a batch waits for company."""
_TRIES = 3

OnFailing = Callable[["Connection", Failing], Awaitable[None]]
"""Told, in the transaction, of a subscription that has begun to fail."""


class Recorder:
    """Gathers attempts and writes them. Whoever added one can wait until it is on the disk."""

    def __init__(
        self, pool: Pool, clock: Callable[[], datetime], on_failing: OnFailing | None = None
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._on_failing = on_failing
        self._batch: list[Attempt] = []
        self._written: asyncio.Task[None] | None = None

    def add(self, attempt: Attempt) -> asyncio.Task[None]:
        """Take an attempt; what is returned is done when it is written."""
        if self._written is None or not self._batch:
            self._written = asyncio.create_task(self._write_soon(self._written))
        self._batch.append(attempt)
        return self._written

    async def _write_soon(self, before: asyncio.Task[None] | None) -> None:
        await asyncio.sleep(LINGER_SECONDS)
        if before is not None:
            await asyncio.wait([before])  # in the order in which they were made
        batch, self._batch = self._batch, []
        for left in reversed(range(_TRIES)):
            try:
                return await self._write(batch)
            except asyncpg.DeadlockDetectedError:
                # The sequencer moves lanes too. One of the two goes first.
                if not left:
                    raise
        return None

    async def _write(self, batch: list[Attempt]) -> None:
        async with self._pool.acquire() as conn, conn.transaction():
            for failing in await attempts.record_attempts(conn, batch, now=self._clock()):
                if self._on_failing is not None:
                    await self._on_failing(conn, failing)
