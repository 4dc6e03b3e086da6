"""Reads from a streaming replica, each connection of which proves that it is as new as the reader needs it.

Positions of the primary's log are noted once a second with the moment at which they were asked for. A replica that has
replayed a position shows everything that was committed before that moment: no clock of another machine is compared.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import structlog

from billfold.platform.clock import monotonic
from billfold.platform.database.pool import create_replica_pool
from billfold.platform.database.shortage import error_summary

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

log = structlog.get_logger(__name__)

AGE_MAX_SECONDS = 60
"""How old a read may be at most, whatever its reader bears."""
CAUGHT_UP_SECONDS = 1.0
"""For how long a document waits for a replica that has yet to replay what it is made of."""
PROBE_SECONDS = 1.0
_POLL_SECONDS = 0.05
# Whatever is visible has been flushed, and a replica gets what is flushed.
FLUSHED = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint"
REPLAYED = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint END
"""
IDENTITY = """
SELECT system_identifier, (SELECT oid::bigint FROM pg_database WHERE datname = current_database())
  FROM pg_control_system()
"""


class ReplicaBehind(Exception):
    """A server is not as new as a reader needs it, or no replica of the database."""


class Mark(NamedTuple):
    """A position of the primary's log, in bytes, and when on the monotonic clock it was asked for."""

    at: float
    position: int


class Reading:
    """Reads of one request or document: no connection serves them that has not replayed `position`."""

    __slots__ = ("position", "replayed")

    def __init__(self, position: int) -> None:
        self.position = position
        self.replayed: int | None = None
        """What the connection furthest behind had replayed."""


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


class Replica:
    """The replicas of one address, as one process reads from them."""

    def __init__(self, primary: Pool, pool: Pool, *, clock: Callable[[], float] = monotonic) -> None:
        self._primary = primary
        self.pool = pool
        self._clock = clock
        self._marks: deque[Mark] = deque()
        self._replayed: int | None = None

    @property
    def age_seconds(self) -> float | None:
        """How old reads are at most; None for a replica that is away or a minute behind."""
        return None if self._replayed is None else self.age_of(self._replayed)

    def age_of(self, replayed: int) -> float | None:
        """Return for how long what was committed may be missing from what had been replayed."""
        seen = [each.at for each in self._marks if each.position <= replayed]
        return self._clock() - seen[-1] if seen else None

    def within(self, seconds: int) -> Reading | None:
        """Return how to read what is at most so old, or None when no replica is so new."""
        oldest = self._clock() - min(seconds, AGE_MAX_SECONDS)
        mark = next((each for each in self._marks if each.at >= oldest), None)
        if mark is None or self._replayed is None or self._replayed < mark.position:
            return None
        return Reading(mark.position)

    async def current(self) -> Reading | None:
        """Return how to read everything that is committed now, or None when no replica has it in time."""
        if self._replayed is None:
            return None
        position: int = await self._primary.fetchval(FLUSHED)
        ends_at = self._clock() + CAUGHT_UP_SECONDS
        while not await self._has_replayed(position):
            if self._clock() > ends_at:
                return None
            await asyncio.sleep(_POLL_SECONDS)
        return Reading(position)

    @contextmanager
    def reading(self, wanted: Reading) -> Iterator[None]:
        """Let connections of the pool serve these reads, if they are as new. Acquiring others raises ReplicaBehind."""
        token = _reading.set(wanted)
        try:
            yield
        finally:
            _reading.reset(token)

    async def probe(self) -> None:
        """Note where the primary is, and how far a replica has come."""
        at = self._clock()
        with suppress(Exception):  # without new marks what is read grows older, and nothing is read in the end
            async with asyncio.timeout(PROBE_SECONDS):
                self._marks.append(Mark(at, await self._primary.fetchval(FLUSHED)))
        while self._marks and self._marks[0].at < at - AGE_MAX_SECONDS:
            self._marks.popleft()
        was_there = self._replayed is not None
        try:
            await self._has_replayed(0)
        except Exception as error:  # noqa: BLE001 - whatever it is, the primary answers
            self._replayed = None
            if was_there:
                log.warning("replica_unavailable", error=error_summary(error))

    async def _has_replayed(self, position: int) -> bool:
        wanted = Reading(0)
        with self.reading(wanted):
            async with asyncio.timeout(2 * PROBE_SECONDS), self.pool.acquire():
                self._replayed = wanted.replayed
        return self._replayed is not None and self._replayed >= position


@asynccontextmanager
async def open_replica(primary: Pool, dsn: str, *, most: int, role: str | None) -> AsyncIterator[Replica]:
    """Read from replicas until the context ends. One that is away or another database is not read from."""

    async def check_identity(conn: Connection) -> None:
        if await conn.fetchrow(IDENTITY) != await primary.fetchrow(IDENTITY):
            raise ReplicaBehind("It is no replica of the database.")

    pool = await create_replica_pool(dsn, max_size=most, role=role, init=check_identity, setup=_check_age)
    replica = Replica(primary, pool)
    probing = asyncio.create_task(_probe(replica))
    try:
        yield replica
    finally:
        probing.cancel()
        with suppress(asyncio.CancelledError):
            await probing
        pool.terminate()  # nobody waits for a server that does not answer


async def _probe(replica: Replica) -> None:
    while True:
        await replica.probe()
        await asyncio.sleep(PROBE_SECONDS)


async def _check_age(conn: Connection) -> None:
    """Let a connection serve only what its server is new enough for."""
    wanted, replayed = _reading.get(), await conn.fetchval(REPLAYED)
    if wanted is None or replayed is None or replayed < wanted.position:
        raise ReplicaBehind("It has not replayed what is read.")
    wanted.replayed = replayed if wanted.replayed is None else min(wanted.replayed, replayed)
