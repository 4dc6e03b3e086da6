"""Streaming replicas, read only while they show everything committed before a document was started.

The criterion is a position in the primary's log: clocks of other machines are not compared.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from billfold.platform.clock import monotonic
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.pool import create_replica_pool
from billfold.platform.database.shortage import error_summary

log = structlog.get_logger(__name__)

CAUGHT_UP_SECONDS = 1.0
"""Maximum time that a document waits for a replica to replay the rows it shows."""
RETRY_SECONDS = 10.0
"""Time for which the primary is read before an unavailable replica is tried again."""
_POLL_SECONDS = 0.05
# Everything visible has been flushed, and a replica receives everything flushed.
FLUSHED = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint"
REPLAYED = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint END
"""
IDENTITY = """
SELECT system_identifier, (SELECT oid::bigint FROM pg_database WHERE datname = current_database())
  FROM pg_control_system()
"""


class ReplicaBehind(Exception):
    """A server is not a replica of the database, or has not replayed the rows to read."""


class Replica:
    """The replicas of one address, as one process reads from them."""

    def __init__(self, primary: Pool, dsn: str, *, most: int, role: str | None) -> None:
        self._primary = primary
        self._position = 0
        self._retry_at = 0.0
        self.pool = create_replica_pool(
            dsn, max_size=most, role=role, init=self._check_identity, setup=self._check_position
        )

    async def catch_up(self) -> bool:
        """Wait until a replica shows everything committed so far; return whether one does in time."""
        if monotonic() < self._retry_at:
            return False
        position: int = await self._primary.fetchval(FLUSHED)
        try:
            async with asyncio.timeout(CAUGHT_UP_SECONDS):
                while await self.pool.fetchval(REPLAYED) < position:
                    await asyncio.sleep(_POLL_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever it is, the primary is read
            log.warning("replica_unavailable", error=error_summary(error))
            self._retry_at = monotonic() + RETRY_SECONDS
            return False
        # Raised only now: documents in progress would otherwise wait for rows that they do not show.
        self._position = max(self._position, position)
        return True

    async def _check_identity(self, conn: Connection) -> None:
        if await conn.fetchrow(IDENTITY) != await self._primary.fetchrow(IDENTITY):
            raise ReplicaBehind("It is not a replica of the database.")

    async def _check_position(self, conn: Connection) -> None:
        """Refuse a connection whose server is behind: several replicas may share one address."""
        replayed = await conn.fetchval(REPLAYED)
        if replayed is None or replayed < self._position:
            raise ReplicaBehind("It has not replayed the rows to be read.")


@asynccontextmanager
async def open_replica(primary: Pool, dsn: str, *, most: int, role: str | None) -> AsyncIterator[Replica]:
    """Read from replicas until the context ends. No connection is made before it is needed."""
    replica = Replica(primary, dsn, most=most, role=role)
    await replica.pool
    try:
        yield replica
    finally:
        replica.pool.terminate()  # do not wait for an unavailable server
