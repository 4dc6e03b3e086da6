"""The pool of database connections, how its sessions are set up, and batched round trips.

Values of type json and jsonb stay text: the caller decides what to decode. Ids and instants
are written and read by the thousand, so they have the types that the driver handles fastest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

import asyncpg
import structlog
from asyncpg.pgproto import pgproto

from billfold.platform import ids
from billfold.platform.clock import monotonic
from billfold.platform.database.connection import CONNECT_SECONDS, Connection, Connector, Db, Pool, WatchedConnection
from billfold.platform.database.shortage import Patience, error_summary, is_shortage

log = structlog.get_logger(__name__)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INSTANT_CACHE_SIZE = 4096

APP_ROLE = "billfold_app"
"""The role of the application: it uses the tables and owns none. Some of them are append-only for it."""
_STATEMENT_CACHE_SIZE = 1024
_COMMAND_SECONDS = 60.0
_SESSION = {
    "application_name": "billfold",
    "timezone": "UTC",
}
"""The settings that a pooler keeps for each of its clients."""
_OWN_SESSION = {
    # Compiling a plan costs more than any of our statements takes.
    "jit": "off",
}
_READ_ONLY = ("in_hot_standby", "default_transaction_read_only")
"""Parameters that a server reports without being asked."""
# The driver writes its own type without inspection: a third of the time of others.
ids.set_uuid_factory(pgproto.UUID)


async def create_pool(
    dsn: str,
    *,
    min_size: int = 1,
    max_size: int = 10,
    role: str | None = None,
    by_pooler: bool = False,
) -> Pool:
    """Return an open pool of `min_size` to `max_size` connections whose sessions speak UTC.

    `role` is the role whose rights sessions have. `by_pooler`: each transaction may have another session, so nothing
    is set or prepared in one. Raises the driver's error if the database does not answer. Once open, it waits for
    an unavailable database, and raises Unavailable if it stays so.
    """
    session = _SESSION if by_pooler else {**_SESSION, **_OWN_SESSION, **({} if role is None else {"role": role})}
    connector = _PatientConnector()
    pool = await asyncpg.create_pool(
        dsn,
        connect=connector.connect,
        connection_class=WatchedConnection,
        timeout=CONNECT_SECONDS,
        min_size=min_size,
        max_size=max_size,
        statement_cache_size=0 if by_pooler else _STATEMENT_CACHE_SIZE,
        max_cached_statement_lifetime=0,
        command_timeout=_COMMAND_SECONDS,
        server_settings=session,
        init=_set_timestamp_codec,
        reset=_drop_read_only,
    )
    connector.is_open = True
    return pool


def create_replica_pool(
    dsn: str,
    *,
    max_size: int,
    role: str | None,
    init: Callable[[Connection], Awaitable[None]],
    setup: Callable[[Connection], Coroutine[Any, Any, None]],
) -> Pool:
    """Return a pool of connections to replicas, which makes no connection until one is requested.

    `init` checks each new connection, `setup` each that is acquired: if they raise, it is closed. It does not
    wait for unavailable servers.
    """

    async def begin(conn: asyncpg.Connection[asyncpg.Record]) -> None:
        await _set_timestamp_codec(conn)
        await init(conn)

    async def connect(*args: Any, **options: Any) -> asyncpg.Connection[asyncpg.Record]:
        return await connector.connect(*args, **options, target_session_attrs="standby")

    connector = Connector()
    return asyncpg.create_pool(
        dsn,
        connect=connect,
        connection_class=WatchedConnection,
        timeout=CONNECT_SECONDS,
        min_size=0,
        max_size=max_size,
        statement_cache_size=_STATEMENT_CACHE_SIZE,
        max_cached_statement_lifetime=0,
        command_timeout=_COMMAND_SECONDS,
        server_settings={**_SESSION, **_OWN_SESSION, **({} if role is None else {"role": role})},
        init=begin,
        setup=setup,
        reset=_leave,
    )


async def _leave(_: Connection) -> None:
    """Reset nothing: no session is changed for longer than a transaction."""


BEAT_SECONDS = 2.0
SILENCE_SECONDS = 8.0
"""A server that leaves a heartbeat unanswered for so long hangs, as does one to which no connection can be made for
`CONNECT_SECONDS`, which are fewer. A statement may take longer."""


class _PatientConnector:
    """Makes the connections of one pool. Once the pool is open, it waits for an unavailable database.

    A server that hangs closes no connection: a heartbeat on a connection of its own finds that out, and ends those of
    the pool. What waited on them is tried again. Until the server answers, no request waits longer than the patience.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._is_silent = False
        self._patience = Patience()
        self._connector = Connector()
        self._made: set[asyncpg.Connection[asyncpg.Record]] = set()
        self._heartbeat: asyncio.Task[None] | None = None

    async def connect(self, *args: Any, **options: Any) -> asyncpg.Connection[asyncpg.Record]:
        """Return a connection. Raises Unavailable."""
        while True:
            if self._is_silent:
                await self._patience.wait(ConnectionError("The database server does not answer."))
                continue
            try:
                connection = await self._connector.connect(*args, **options)
            except Exception as error:
                if not self.is_open:
                    raise
                # Whatever the network error, it may be fixed soon.
                away = ConnectionError(repr(error)) if isinstance(error, OSError) else error
                await self._patience.wait(away)
            else:
                self._patience.end()
                self._made.add(connection)
                connection.add_termination_listener(self._forget_closed)
                if self._heartbeat is None or self._heartbeat.done():
                    self._heartbeat = asyncio.create_task(self._beat(*args, **options))
                return connection

    def _forget_closed(self, _: object) -> None:
        self._made = {each for each in self._made if not each.is_closed()}
        if not (self._made or self._is_silent) and self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None

    async def _beat(self, *args: Any, **options: Any) -> None:
        """Ask the server as long as there are connections; while it is silent, until it answers."""
        beat: asyncpg.Connection[asyncpg.Record] | None = None
        try:
            while self._made or self._is_silent:
                await asyncio.sleep(BEAT_SECONDS)
                asked_at = monotonic()
                try:
                    beat = beat or await self._connector.connect(*args, **options)
                    await beat.fetchval("SELECT 1", timeout=SILENCE_SECONDS)
                    self._is_silent = False
                    continue
                except TimeoutError:
                    # Much later it was this process that was stopped.
                    if monotonic() - asked_at < 2 * SILENCE_SECONDS:
                        self._end_all(asked_at)
                except Exception:  # noqa: BLE001 - refused or lost: found out by those who need a connection
                    self._is_silent = False
                if beat is not None:
                    beat.terminate()
                    beat = None
        finally:
            if beat is not None:
                beat.terminate()

    def _end_all(self, since: float) -> None:
        if not self._is_silent:
            log.error("database_silent", connections=len(self._made))
        self._is_silent = True
        self._patience.begin(since)
        for each in self._made:
            each.terminate()


def uuid_array(ids: Iterable[UUID]) -> str:
    """Return ids as the text of an array, for statements that book money.

    The driver inspects every element of an array twice, which costs more than text. It is read by
    `unnest($1::text::uuid[])` or `ANY((SELECT $1::text::uuid[])::uuid[])`: bare in a
    condition it may be parsed again for every row that is checked.
    """
    return f"{{{','.join(map(str, ids))}}}"


@asynccontextmanager
async def in_transaction(conn: Db) -> AsyncIterator[Connection]:
    """Yield a connection, one of the pool if it is a pool, in a transaction."""
    if isinstance(conn, asyncpg.Pool):
        async with conn.acquire() as acquired, acquired.transaction():
            yield acquired
        return
    async with conn.transaction():
        yield conn


async def _set_timestamp_codec(conn: asyncpg.Connection[asyncpg.Record]) -> None:
    """Encode and decode timestamptz through a cache of instants: a batch has only a few."""
    await conn.set_type_codec(
        "timestamptz", schema="pg_catalog", format="tuple", encoder=_encode_timestamp, decoder=_decode_timestamp
    )


@lru_cache(_INSTANT_CACHE_SIZE)
def _encode_timestamp(instant: datetime) -> tuple[int]:
    """Return microseconds since 2000. Raises TypeError for a time without a zone."""
    return ((instant - _EPOCH) // _MICROSECOND,)


@lru_cache(_INSTANT_CACHE_SIZE)
def _decode_timestamp(since_epoch: tuple[int]) -> datetime:
    return _EPOCH + timedelta(microseconds=since_epoch[0])


async def _drop_read_only(conn: Connection) -> None:
    """Drop a connection to a server that no longer accepts writes: the next one finds the primary.

    No session is changed for longer than a transaction, so resetting it would only cost a round trip.
    """
    session = conn.get_settings()
    if "on" in {getattr(session, name, "off") for name in _READ_ONLY}:
        asyncio.get_running_loop().call_soon(conn.terminate)  # after its return to the pool


# Plans made while a table was small must not scan it when it has grown.
_SET_UP = "SET synchronous_commit = off; SET enable_seqscan = off"
_SET_LOCAL = "SET LOCAL synchronous_commit = off"


class PinnedConnection:
    """A connection held from the pool, whose commits do not wait for the disk; another is acquired when it breaks.

    `by_pooler`: its session is shared with other clients, so no plan is kept.
    """

    def __init__(self, pool: Pool, *, by_pooler: bool) -> None:
        self._pool = pool
        self._by_pooler = by_pooler
        self._patience = Patience()
        self._free = asyncio.Lock()
        self._conn: asyncpg.pool.PoolConnectionProxy[asyncpg.Record] | None = None

    async def fetch(self, query: str, *args: object) -> Sequence[asyncpg.Record]:
        """Return the rows, one statement after the other.

        Tries other connections while the database is unavailable or full; raises Unavailable if it stays so.
        """
        async with self._free:
            while True:
                try:
                    rows = await self._fetch(query, *args)
                except Exception as error:  # noqa: BLE001 - raised again unless it is a shortage
                    await self.close()
                    await self._patience.wait(error)
                else:
                    self._patience.end()
                    return rows

    async def close(self) -> None:
        """End the connection: others must not get its session, since their commits have to wait for the disk."""
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(asyncpg.InterfaceError):  # it has ended already
                conn.terminate()
            try:
                await self._pool.release(conn)
            except Exception as error:
                if not is_shortage(error):
                    raise
                log.warning("db_connection_not_released", error=error_summary(error))

    async def _fetch(self, query: str, *args: object) -> Sequence[asyncpg.Record]:
        if self._conn is None:
            self._conn = await self._pool.acquire()
            if not self._by_pooler:
                await self._conn.execute(_SET_UP)
        if not self._by_pooler:
            return await self._conn.fetch(query, *args)
        async with self._conn.transaction():
            await self._conn.execute(_SET_LOCAL)
            return await self._conn.fetch(query, *args)


Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH_MAX = 500


class Batcher(Generic[Item, Result]):
    """Runs items as batches, one batch at a time, in order.

    While one batch runs the next is collected; there is no timer, and a single caller is served at once.
    """

    def __init__(self, run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]], *, limit: int = BATCH_MAX) -> None:
        self._run = run
        self._limit = limit
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    def ask(self, item: Item) -> asyncio.Future[Result]:
        """Return a future for the answer. An error of the batch is the error of all its items."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run_batches())
        return future

    async def settle(self) -> None:
        """Wait until no batch is running."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _run_batches(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._limit], self._waiting[self._limit :]
            try:
                answers = await self._run([item for item, _ in batch])
            except Exception as error:  # noqa: BLE001 - handed on to everybody who waits
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                        future.exception()  # a caller may have stopped waiting: the loop would log a traceback
            else:
                for (_, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
