"""A line to the database kept open for what every request needs.

Taken from the pool once and set up for many small statements: they need not be on disk when they
are answered, and their plans never scan a table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import asyncpg
import structlog

from billfold.kit.errors import Unavailable

if TYPE_CHECKING:
    from billfold.kit.db import Pool

log = structlog.get_logger(__name__)

# The keys and counters of requests may lag behind a crash: what money does, the engine remembers.
# Plans made while a table was small must not scan it when it has grown.
_SET_UP = "SET synchronous_commit = off; SET enable_seqscan = off"
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    # What the driver says when the server's last words came between two statements.
    asyncpg.InternalClientError,
    asyncio.TimeoutError,
    OSError,
)


class Line:
    """One connection of the pool, held; another is taken when it breaks."""

    __slots__ = ("_conn", "_free", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._free = asyncio.Lock()
        self._conn: asyncpg.pool.PoolConnectionProxy[asyncpg.Record] | None = None

    async def fetch(self, query: str, *args: object) -> Sequence[asyncpg.Record]:
        """Return the rows, one statement after the other.

        Tries a second connection; raises Unavailable when that fails too.
        """
        async with self._free:
            try:
                return await self._fetch(query, *args)
            except _LOST as error:
                log.warning("line_lost", error=repr(error))
                await self.close()
            try:
                return await self._fetch(query, *args)
            except _LOST as error:
                await self.close()
                raise Unavailable("The database does not answer.", retry_after_seconds=1) from error

    async def close(self) -> None:
        """Give the connection back."""
        conn, self._conn = self._conn, None
        if conn is not None:
            try:
                await self._pool.release(conn)
            except _LOST as error:
                log.warning("line_not_released", error=repr(error))

    async def _fetch(self, query: str, *args: object) -> Sequence[asyncpg.Record]:
        if self._conn is None:
            self._conn = await self._pool.acquire()
            await self._conn.execute(_SET_UP)
        return await self._conn.fetch(query, *args)
