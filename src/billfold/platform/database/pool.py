"""The pool of database connections, how its sessions are set up, and batched round trips.

Values of type json and jsonb stay text: whoever reads them decides what to decode. Ids and instants
are written and read by the thousand, so they come and go in the shape the driver is quickest with.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

import asyncpg
from asyncpg.pgproto import pgproto

from billfold.platform import ids
from billfold.platform.database.connection import CONNECT_SECONDS, Connection, Connector, Pool, WatchedConnection
from billfold.platform.database.shortage import Patience

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INSTANT_CACHE_SIZE = 4096

APP_ROLE = "billfold_app"
"""The role of the application: it uses the tables and owns none. Some it may only add to."""
_STATEMENT_CACHE_SIZE = 1024
_COMMAND_SECONDS = 60.0
_SESSION = {
    "application_name": "billfold",
    "timezone": "UTC",
}
"""What a pooler keeps for each of its clients."""
_OWN_SESSION = {
    # Compiling a plan costs more than any statement of ours takes.
    "jit": "off",
}
_READ_ONLY = ("in_hot_standby", "default_transaction_read_only")
"""What a server says of itself, unasked."""
# The driver writes its own without looking into them: a third of the time of others.
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

    `role` is whose rights the sessions have. `by_pooler`: each transaction may have another session, so that nothing
    is set or prepared in one. Raises what the driver raises when the database does not answer. Once open it waits for
    a database that is away, and raises Unavailable when it stays away.
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
    """Return a pool of connections to replicas, none of which is made before it is asked for.

    `init` looks at each new connection, `setup` at each that is lent: one of which they raise is closed. No server that
    is away is waited for.
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
    """Reset nothing: nobody changes a session for longer than a transaction."""


class _PatientConnector:
    """Makes the connections of one pool. Once that is open, a database that goes away is waited for."""

    def __init__(self) -> None:
        self.is_open = False
        self._patience = Patience()
        self._connector = Connector()

    async def connect(self, *args: Any, **options: Any) -> asyncpg.Connection[asyncpg.Record]:
        """Return a connection. Raises Unavailable."""
        while True:
            try:
                connection = await self._connector.connect(*args, **options)
            except Exception as error:
                if not self.is_open:
                    raise
                # Whatever the network says, somebody may mend it.
                away = ConnectionError(repr(error)) if isinstance(error, OSError) else error
                await self._patience.wait(away)
            else:
                self._patience.end()
                return connection


def uuid_array(ids: Iterable[UUID]) -> str:
    """Return ids as the text of an array, for statements on the way of money.

    The driver looks into every element of an array twice, which costs more than text. It is read by
    `unnest($1::text::uuid[])` or `ANY((SELECT $1::text::uuid[])::uuid[])`: bare in a
    condition it may be read again for every row that is looked at.
    """
    return f"{{{','.join(map(str, ids))}}}"


@asynccontextmanager
async def in_transaction(conn: Connection | Pool) -> AsyncIterator[Connection]:
    """Lend a connection, one of the pool when it is a pool, in a transaction."""
    if isinstance(conn, asyncpg.Pool):
        async with conn.acquire() as acquired, acquired.transaction():
            yield acquired
        return
    async with conn.transaction():
        yield conn


async def _set_timestamp_codec(conn: asyncpg.Connection[asyncpg.Record]) -> None:
    """Write and read timestamptz by way of a memory of instants: a batch has but a few."""
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
    """Keep no connection to a server that takes no writes any more: the next one looks for the primary.

    Nobody changes a session for longer than a transaction: resetting it would cost a round trip.
    """
    session = conn.get_settings()
    if "on" in {getattr(session, name, "off") for name in _READ_ONLY}:
        asyncio.get_running_loop().call_soon(conn.terminate)  # once the pool has it back


Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH_MAX = 500


class Batcher(Generic[Item, Result]):
    """Runs items as batches, one batch at a time, in order.

    While one batch runs the next gathers; there is no timer, and a single caller is served at once.
    """

    __slots__ = ("_limit", "_run", "_task", "_waiting")

    def __init__(self, run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]], *, limit: int = BATCH_MAX) -> None:
        self._run = run
        self._limit = limit
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    def ask(self, item: Item) -> asyncio.Future[Result]:
        """Return what will hold the answer. An error of the batch is everybody's error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run_batches())
        return future

    async def settle(self) -> None:
        """Wait until nothing is under way."""
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
            else:
                for (_, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
