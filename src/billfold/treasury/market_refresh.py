"""Keeps what a process knows of the market and its calendars as new as their tables, without a restart.

An import or an override is noticed within `REFRESH_SECONDS`. Its bills are known at once and bought, at its prices,
`IN_USE_AFTER_SECONDS` after the change: by then every process knows a bill that any of them may buy. All processes
begin at that same instant, by the clock of the database: nobody buys by the old prices or calendars at one of them and
sells by the new ones at another.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from billfold.bills.rules.market import Market
from billfold.bills.store import load_market, market_version
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import retry_now
from billfold.platform.database.connection import Pool
from billfold.platform.database.shortage import error_summary
from billfold.treasury.market_log import seconds_since_change

log = structlog.get_logger(__name__)

REFRESH_SECONDS = 2.0
IN_USE_AFTER_SECONDS = 4 * REFRESH_SECONDS


@asynccontextmanager
async def run_market_refresher(pool: Pool, market: Market) -> AsyncIterator[None]:
    """Keep a market new as long as the context lasts."""
    task = asyncio.create_task(MarketRefresher(pool, market).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class MarketRefresher:
    """Looks after the one market of a process. It costs one small query every `REFRESH_SECONDS`."""

    def __init__(self, pool: Pool, market: Market, *, activation_delay: float = IN_USE_AFTER_SECONDS) -> None:
        self._pool = pool
        self._market = market
        self._activation_delay = activation_delay
        self._pending: Market | None = None
        self._activates_at = 0.0

    async def run(self) -> None:
        """Look again and again, until cancelled. A database that is away is waited for."""
        while True:
            await asyncio.sleep(self._pause())
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - what is known is used on, whatever is wrong with the newest
                log.warning("market_refresh_failed", error=error_summary(error))

    async def look(self) -> None:
        """Read what was imported, and use what was read a while ago."""
        newest = self._pending or self._market
        if newest.version != await market_version(self._pool):
            self._pending = await self._read()
            self._market.add_bills_of(self._pending)
            age = await seconds_since_change(self._pool)
            self._activates_at = monotonic() + max(0, self._activation_delay - max(0, age))
        if self._pending is not None and monotonic() >= self._activates_at:
            self._market.replace_with(self._pending)
            self._pending = None
            await retry_now(self._pool, wall_now())
            log.info("market_refreshed", newest_rates=self._market.last_day)

    def _pause(self) -> float:
        """Return the seconds to the next look, which is due when what was read is to be used."""
        if self._pending is None:
            return REFRESH_SECONDS
        return min(REFRESH_SECONDS, max(0, self._activates_at - monotonic()))

    async def _read(self) -> Market:
        async with self._pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
            newest = await load_market(conn, age_max_days=self._market.age_max_days)
        if newest.calendars.overrides == self._market.calendars.overrides:
            newest.calendars = self._market.calendars  # which has worked out most days already
        return newest
