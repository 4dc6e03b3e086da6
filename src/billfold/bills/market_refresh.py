"""Keeps what a process knows of the market as new as its tables, without a restart.

An import is noticed within `LOOK_SECONDS`. Its bills are known at once and bought, at its prices,
`GRACE_SECONDS` later: by then every process knows a bill that any of them may buy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg
import structlog

from billfold.bills.store import count_rows, load_market
from billfold.platform.clock import monotonic

if TYPE_CHECKING:
    from billfold.bills.rules.market import Market
    from billfold.platform.database.pool import Pool

log = structlog.get_logger(__name__)

LOOK_SECONDS = 2.0
GRACE_SECONDS = 3 * LOOK_SECONDS

_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


@asynccontextmanager
async def watched(pool: Pool, market: Market) -> AsyncIterator[None]:
    """Keep a market new as long as the context lasts."""
    watch = asyncio.create_task(MarketWatch(pool, market).run())
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


class MarketWatch:
    """Looks after the one market of a process. It costs one small query every `LOOK_SECONDS`."""

    def __init__(self, pool: Pool, market: Market, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._pool = pool
        self._market = market
        self._grace_seconds = grace_seconds
        self._newer: Market | None = None
        self._used_at = 0.0

    async def run(self) -> None:
        """Look again and again, until cancelled. A database that is away is waited for."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except _AWAY as error:
                log.warning("market_not_read", error=repr(error))

    async def look(self) -> None:
        """Read what was imported, and use what was read a while ago."""
        newest = self._newer or self._market
        if newest.made_of != await count_rows(self._pool):
            self._newer = await self._read()
            self._market.know_bills_of(self._newer)
            self._used_at = monotonic() + self._grace_seconds
        if self._newer is not None and monotonic() >= self._used_at:
            self._market.become(self._newer)
            self._newer = None
            log.info("market_is_newer", made_of=self._market.made_of)

    async def _read(self) -> Market:
        async with (
            self._pool.acquire() as conn,
            conn.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await load_market(conn, self._market.calendars)
