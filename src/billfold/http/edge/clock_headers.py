"""The bank's time, in a header of every response of a sandbox.

For a request that is admitted the clock is read together with its rate limit. For all others it is read
here: once for all that wait, so that unauthenticated requests take one connection at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import asyncpg
import structlog

from billfold.platform.clock import ClockState, read_clock, wall_now
from billfold.platform.database.batcher import Batcher
from billfold.platform.dates import iso_z

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Pool

log = structlog.get_logger(__name__)

CLOCK_HEADER = b"x-service-clock"
CLOCK_TIMEOUT_SECONDS = 1.0
"""How long a refusal waits for a database that does not answer, before it goes without."""
_DATABASE_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError, OSError)

Header = tuple[bytes, bytes]


class ClockHeaders:
    """The clock header of requests that were not admitted."""

    __slots__ = ("_batcher", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._batcher: Batcher[None, ClockState | None] = Batcher(self._read)

    async def with_clock(self, headers: Sequence[Header]) -> list[Header]:
        """Return the headers of an answer with the clock's, unless the database does not answer."""
        if any(name == CLOCK_HEADER for name, _ in headers):
            return [*headers]
        clock = await self._batcher.ask(None)
        return [*headers] if clock is None else [*headers, clock_header(clock, wall_now())]

    async def close(self) -> None:
        """Give the connection back."""
        await self._batcher.settle()

    async def _read(self, batch: Sequence[None]) -> Sequence[ClockState | None]:
        try:
            async with asyncio.timeout(CLOCK_TIMEOUT_SECONDS), self._pool.acquire() as conn:
                clock = await read_clock(conn)
        except _DATABASE_ERRORS as error:
            log.warning("clock_read_failed", error=repr(error))
            clock = None
        return [clock] * len(batch)


def create_clock_headers(bank: Bank) -> ClockHeaders | None:
    """Return what shows the clock of a sandbox; a bank in production shows none."""
    return None if bank.settings.is_production else ClockHeaders(bank.pool)


def clock_header(clock: ClockState, wall: datetime) -> Header:
    """Return the header that says what the clock shows at a wall time."""
    return CLOCK_HEADER, iso_z(clock.at(wall)).encode()
