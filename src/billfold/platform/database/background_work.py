"""Background work in the database: claimed by one process at a time, and retried after a failure.

A claim is renewed as long as the work continues. The claim of a dead process expires, and the next one
continues. Work must bear being done twice: a claim only saves the effort. An item that fails takes no other along.
Delays are wall time: they pass even when the bank's clock stands still.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.shortage import error_summary, is_shortage

LASTS = timedelta(seconds=15)
"""Lifetime of a claim unless it is renewed."""
_RENEWED_PER_CLAIM = 5
_POLL_SECONDS = 0.05

_CLAIM = """
INSERT INTO work_claim (name, owner_id, until) VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE SET owner_id = excluded.owner_id, until = excluded.until
 WHERE work_claim.until <= $3 OR work_claim.owner_id = excluded.owner_id
RETURNING true
"""
_RELEASE = "DELETE FROM work_claim WHERE name = $1 AND owner_id = $2"


@asynccontextmanager
async def claimed(pool: Pool, name: str, *, wait: timedelta | None = None) -> AsyncIterator[bool]:
    """Claim some work exclusively: False if another process has it.

    With `wait` another's claim is awaited for so long, and then TimeoutError is raised.
    """
    owner_id = ids.new()
    if not await _claim(pool, name, owner_id):
        if wait is None:
            yield False
            return
        async with asyncio.timeout(wait.total_seconds()):
            while not await _claim(pool, name, owner_id):
                await asyncio.sleep(_POLL_SECONDS)
    refreshing = asyncio.create_task(_renew(pool, name, owner_id))
    try:
        yield True
    finally:
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing
        await pool.execute(_RELEASE, name, owner_id)


@asynccontextmanager
async def locked(pool: Pool, *lock: int) -> AsyncIterator[Connection | None]:
    """Yield a connection that holds an advisory lock, of one number or two: None if another process has it.

    After an error the connection is dropped: returned to the pool with a lock that was not released, it would keep
    everybody from the work for as long as this process lives.
    """
    key = "$1::int, $2::int" if lock[1:] else "$1::bigint"
    async with pool.acquire() as conn:
        try:
            is_ours = await conn.fetchval(f"SELECT pg_try_advisory_lock({key})", *lock)
            yield conn if is_ours else None
            if is_ours:
                await conn.execute(f"SELECT pg_advisory_unlock({key})", *lock)
        except BaseException:
            with suppress(asyncpg.InterfaceError):  # it has ended already
                conn.terminate()
            raise


async def _claim(pool: Pool, name: str, owner_id: UUID) -> bool:
    now = wall_now()
    return await pool.fetchval(_CLAIM, name, owner_id, now, now + LASTS) is True


async def _renew(pool: Pool, name: str, owner_id: UUID) -> None:
    while True:
        await asyncio.sleep(LASTS.total_seconds() / _RENEWED_PER_CLAIM)
        with suppress(Exception):  # the work itself hits the same error
            await _claim(pool, name, owner_id)


RETRY_MIN_SECONDS, RETRY_MAX_SECONDS = 30, 3_600
_DOUBLINGS_MAX = 7

_READ = "SELECT item, tries, again_at > $2 AS waiting FROM failed_work WHERE kind = $1"
_NOTE = """
INSERT INTO failed_work AS f (kind, item, tries, error, failed_at, again_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (kind, item) DO UPDATE
   SET tries = excluded.tries, error = excluded.error, failed_at = excluded.failed_at, again_at = excluded.again_at
"""
_FORGET = "DELETE FROM failed_work WHERE kind = $1 AND item = ANY($2::text[])"
_RETRY = "UPDATE failed_work SET again_at = $1 WHERE again_at > $1"
_LIST = "SELECT kind, item, tries, error, failed_at, again_at FROM failed_work ORDER BY failed_at, kind, item"


class FailedItem(NamedTuple):
    """One failed item."""

    kind: str
    item: str
    tries: int
    error: str
    failed_at: datetime
    again_at: datetime


class PutAside(NamedTuple):
    """The items of one kind that failed before: those that wait, and those that are due again."""

    kind: str
    waiting: frozenset[str]
    due: Mapping[str, int]
    """Number of attempts of each."""

    async def record(self, conn: Db, failed: Mapping[str, Exception], now: datetime) -> None:
        """Record the items that failed now. A due item that is not among them is done and removed.

        A shortage of the database is not a failure of an item.
        """
        if done := [item for item in self.due if item not in failed]:
            await forget(conn, self.kind, done)
        for item, error in failed.items():
            await put_aside(conn, self.kind, item, error, now=now, tries=self.due.get(item, 0) + 1)


async def put_aside(conn: Db, kind: str, item: str, error: Exception, *, now: datetime, tries: int) -> None:
    """Record the failure of an item, with its number of attempts, unless only the database is unavailable.

    Other connections and files count as failures: a mail server, a custodian, a folder.
    """
    if isinstance(error, OSError) or not is_shortage(error):
        await conn.execute(_NOTE, kind, item, tries, error_summary(error), now, now + retry_delay(tries))


async def forget(conn: Db, kind: str, items: Sequence[str]) -> None:
    """Remove items that are done."""
    await conn.execute(_FORGET, kind, items)


async def retry_now(conn: Db, now: datetime) -> None:
    """Make a failed item due at once: its cause may be fixed."""
    await conn.execute(_RETRY, now)


async def read_put_aside(conn: Db, kind: str, now: datetime) -> PutAside:
    """Return the items of a kind that failed."""
    rows = await conn.fetch(_READ, kind, now)
    waiting = frozenset(row["item"] for row in rows if row["waiting"])
    return PutAside(kind, waiting, {row["item"]: row["tries"] for row in rows if not row["waiting"]})


async def list_failed(conn: Db) -> list[FailedItem]:
    """Return every item that failed and was not done since, the oldest failure first."""
    return [FailedItem(*row) for row in await conn.fetch(_LIST)]


def retry_delay(tries: int) -> timedelta:
    """Return the delay after a number of attempts: doubled each time, one hour at most."""
    seconds = RETRY_MIN_SECONDS << min(tries - 1, _DOUBLINGS_MAX)
    return timedelta(seconds=min(seconds, RETRY_MAX_SECONDS))
