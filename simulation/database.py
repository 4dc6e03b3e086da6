"""PostgreSQL as simulated processes see it: one statement at a time, and after each a fate that the seed draws.

The server is real. Its sessions live on a loop of their own, which runs while a statement blocks the simulation until
it is answered, so that no real latency decides an order. One that waits for a lock of another session stays pending,
and is looked at again after each later statement.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, Self

import asyncpg
from asyncpg.transaction import Transaction
from typing_extensions import override

from billfold.platform.database.pool import create_pool
from simulation.faults import Fate, Faults
from simulation.loop import Process, SimulationLoop, current_process

SESSIONS_MAX = 48
STATEMENT_SECONDS = 60.0
"""Virtual time for which a statement may wait for a lock, as `create_pool` says."""
LATENCY_SECONDS = 0.003
_QUICK_SECONDS = 0.01
"""Real time after which a statement that is not answered may be waiting for a lock."""
_BLOCKED = "SELECT pid FROM unnest($1::int[]) pid WHERE cardinality(pg_blocking_pids(pid)) > 0"
_TERMINATE = "SELECT pg_terminate_backend($1, 10000)"
_CHAIN = """
WITH RECURSIVE chain AS (SELECT unnest(pg_blocking_pids($1)) pid
  UNION SELECT unnest(pg_blocking_pids(pid)) FROM chain)
SELECT EXISTS (SELECT FROM chain WHERE pid = $1)
"""
_BY_DRIVER, _OF_SERVER = re.compile("DECLARE "), re.compile("clock_timestamp|pg_current|xid|data_key")
_NEW_SESSION = "ROLLBACK; SELECT pg_advisory_unlock_all()"


class Postgres:
    """The real server. `trace` is a digest of every statement with its answer, in order."""

    def __init__(self, dsn: str, role: str) -> None:
        self._dsn, self._role = dsn, role
        self._loop = asyncio.new_event_loop()
        self.trace = hashlib.blake2b(digest_size=16)
        self.statements = 0
        self.log: Callable[[str], None] | None = None
        self._pending: list[_Statement] = []
        self._idle: list[Any] = []

    def open(self) -> None:
        """Connect."""
        self.monitor = self.call(asyncpg.connect(self._dsn))
        self._pool = self.call(create_pool(self._dsn, min_size=1, max_size=SESSIONS_MAX, role=self._role))

    def close(self) -> None:
        """End every session."""
        self.call(self._close())
        self._loop.close()

    async def _close(self) -> None:
        self._pool.terminate()
        await self.monitor.close()

    def call(self, work: Any) -> Any:
        """Run a coroutine on the loop of the sessions; the simulation stands still meanwhile."""
        outer, task = asyncio._get_running_loop(), None
        if outer is not None:
            task = asyncio.current_task()
            if task is not None:
                asyncio.tasks._leave_task(outer, task)
            asyncio._set_running_loop(None)
        try:
            return self._loop.run_until_complete(work)
        finally:
            if outer is not None:
                asyncio._set_running_loop(outer)
                if task is not None:
                    asyncio.tasks._enter_task(outer, task)

    def session(self) -> Any:
        """Return a new session: one whose former user is gone, or another connection."""
        return self._idle.pop() if self._idle else self.call(self._unpooled())

    async def _unpooled(self) -> Any:
        return await self._pool.acquire()

    def end(self, real: Any) -> None:
        """End a session as the server does when its client is gone: its transaction and its locks are undone."""
        waiting = [each for each in self._pending if each.real is real]
        self._pending = [each for each in self._pending if each.real is not real]
        if not waiting:
            self.call(real.execute(_NEW_SESSION))
            self._idle.append(real)
        else:
            self.call(self.monitor.execute(_TERMINATE, real.get_server_pid()))
            self._wait(waiting[0])
            self.call(self._pool.release(real))
        self.settle()

    def run(self, real: Any, work: Callable[[], Awaitable[Any]]) -> _Statement:
        """Run one statement until it is answered or waits for a lock."""
        statement = _Statement(real, self._loop.create_task(_awaited(work)))
        stopped = [each.pid for each in self._pending[1:]]
        for pid in stopped:  # if one lock sets several free, they go on in their order
            os.kill(pid, signal.SIGSTOP)
        try:
            self._wait(statement)
        finally:
            self.settle(stopped)
        if not statement.is_done:
            self._pending.append(statement)
            if self.call(self.monitor.fetchval(_CHAIN, statement.pid)):
                self._pending.remove(statement)
                self._interrupt(statement, asyncpg.DeadlockDetectedError("deadlock detected"))
        return statement

    def _interrupt(self, statement: _Statement, error: Exception) -> None:
        self.call(self.monitor.execute("SELECT pg_cancel_backend($1)", statement.pid))
        self._wait(statement)
        statement.error = error

    def settle(self, stopped: Sequence[int] = ()) -> None:
        """Look at the pending statements, oldest first: a lock that one waited for may be free."""
        for statement in list(self._pending):
            if statement.pid in stopped:
                os.kill(statement.pid, signal.SIGCONT)
            self._wait(statement)
            if statement.is_done:
                self._pending.remove(statement)
                statement.tell()

    def give_up(self, statement: _Statement) -> None:
        """Cancel a statement that waits for a lock: whoever asked has gone."""
        if statement in self._pending:
            self._pending.remove(statement)
            self._interrupt(statement, asyncpg.QueryCanceledError("canceling statement due to user request"))

    def _wait(self, statement: _Statement) -> None:
        pause = _QUICK_SECONDS
        while True:
            self.call(asyncio.wait([statement.future], timeout=pause))
            if statement.future.done():
                statement.future.exception()  # seen, also if nobody asks
                statement.is_done = True
                return
            if self.call(self.monitor.fetch(_BLOCKED, [statement.pid])):
                return
            pause = min(2 * pause, 1.0)

    def record(self, process: Process, query: str, answer: object) -> None:
        """Add a statement and its answer to the trace."""
        self.statements += 1
        if _BY_DRIVER.match(query) or _OF_SERVER.search(query):
            answer = type(answer).__name__  # it differs from run to run, and decides nothing
        line = f"{process.name}|{query}|{answer!r}"
        self.trace.update(line.encode())
        if self.log is not None:
            self.log(f"{self.statements} {process.name} {' '.join(query.split())[:160]} -> {answer!r}"[:400])


async def _awaited(work: Callable[[], Awaitable[Any]]) -> Any:
    return await work()


class _Statement:
    """A statement on its way."""

    def __init__(self, real: Any, future: Any) -> None:
        self.real, self.future = real, future
        self.pid: int = real.get_server_pid()
        self.is_done = False
        self.error: Exception | None = None
        self.answered: asyncio.Future[None] | None = None

    def tell(self) -> None:
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.future.result()


_RAISE = "DO $$ BEGIN RAISE EXCEPTION '{}' USING ERRCODE = '{}'; END $$"


class SimulatedConnection:
    """A connection of one process, with the methods of asyncpg's that the bank uses."""

    def __init__(self, pool: SimulatedPool, real: Any) -> None:
        self._pool, self._real = pool, real
        self._top_xact, self._pool_release_ctr, self._savepoints = None, 0, 0
        self._protocol = SimpleNamespace(is_in_transaction=self.is_in_transaction)

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        return await self._run(query, lambda real: real.execute(query, *args), timeout)

    async def fetch(self, query: str, *args: Any, timeout: float | None = None, record_class: Any = None) -> Any:
        return await self._run(query, lambda real: real.fetch(query, *args, record_class=record_class), timeout)

    async def fetchrow(self, query: str, *args: Any, timeout: float | None = None, record_class: Any = None) -> Any:
        return await self._run(query, lambda real: real.fetchrow(query, *args, record_class=record_class), timeout)

    async def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
        return await self._run(query, lambda real: real.fetchval(query, *args, column=column), timeout)

    async def executemany(self, query: str, args: Any, *, timeout: float | None = None) -> None:
        rows = list(args)
        await self._run(query, lambda real: real.executemany(query, rows), timeout)

    async def copy_records_to_table(self, table: str, *, timeout: float | None = None, **options: Any) -> Any:
        options["records"] = list(options["records"])
        return await self._run(f"COPY {table}", lambda real: real.copy_records_to_table(table, **options), timeout)

    def transaction(self, *, isolation: Any = None, readonly: bool = False, deferrable: bool = False) -> Transaction:
        connection: Any = self
        return Transaction(connection, isolation, readonly, deferrable)

    def cursor(self, query: str, *args: Any, timeout: float | None = None, prefetch: int | None = None) -> Any:
        return _Cursor(self, query, self._real.cursor(query, *args, prefetch=prefetch), args, timeout)

    def is_in_transaction(self) -> bool:
        return bool(self._real is not None and self._real.is_in_transaction())

    def is_closed(self) -> bool:
        return self._real is None

    def get_settings(self) -> Any:
        return self._real.get_settings()

    def get_server_pid(self) -> int:
        return 0 if self._real is None else int(self._real.get_server_pid())

    def _get_unique_id(self, prefix: str) -> str:
        self._savepoints += 1
        return f"{prefix}_{self._savepoints}"

    async def reload_schema_state(self) -> None:
        """Nothing is kept."""

    async def close(self, *, timeout: float | None = None) -> None:
        self.terminate()

    def terminate(self) -> None:
        """End the session."""
        real, self._real = self._real, None
        if real is not None:
            self._pool.sessions.discard(real)
            self._pool.postgres.end(real)

    async def _run(self, query: str, work: Callable[[Any], Awaitable[Any]], timeout: float | None = None) -> Any:
        """Let other tasks run, draw the fate, run the statement, let others run."""
        pool, process = self._pool, current_process.get()
        await pool.pause()
        if self._real is None:
            raise asyncpg.InterfaceError("connection is closed")
        fate = pool.faults.draw(query)
        if fate is Fate.LOST_BEFORE:
            self._lose(process, query, fate)
        if fate.sqlstate:
            work, query = _raising(fate, query), f"[{fate}] {query}"
        real, postgres = self._real, pool.postgres
        statement = postgres.run(real, lambda: work(real))
        if not statement.is_done:
            await self._blocked(statement, timeout or STATEMENT_SECONDS)
        try:
            answer = statement.result()
        except Exception as error:
            postgres.record(process, query, f"{type(error).__name__} {error}")
            raise
        postgres.record(process, query, answer)
        if fate is Fate.LOST_AFTER:
            self._lose(process, query, fate)
        await pool.pause()
        return answer

    def _lose(self, process: Process, query: str, fate: Fate) -> None:
        self._pool.postgres.record(process, query, fate)
        self.terminate()
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    async def _blocked(self, statement: _Statement, seconds: float) -> None:
        self._pool.faults.happened["waits for a lock"] += 1
        statement.answered = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await statement.answered
        except BaseException:
            self._pool.postgres.give_up(statement)
            raise


def _raising(fate: Fate, query: str) -> Callable[[Any], Awaitable[Any]]:
    async def refuse(real: Any) -> None:
        try:
            await real.execute(_RAISE.format(fate, fate.sqlstate))
        finally:
            if query.startswith("COMMIT"):
                await real.execute("ROLLBACK")

    return refuse


class _Cursor:
    """A cursor: awaited, or iterated row by row."""

    def __init__(self, conn: SimulatedConnection, query: str, real: Any, args: Any, timeout: float | None) -> None:
        self._conn, self._query, self._real, self._timeout = conn, query, real, timeout
        del args

    def __await__(self) -> Any:
        return self._open().__await__()

    async def _open(self) -> _Cursor:
        self._real = await self._step("DECLARE", lambda: _awaited(lambda: self._real))
        return self

    def __aiter__(self) -> _Cursor:
        self._real = self._real.__aiter__()
        return self

    async def __anext__(self) -> Any:
        row = await self._step("NEXT", lambda: anext(self._real, None))
        if row is None:
            raise StopAsyncIteration
        return row

    async def fetch(self, n: int, *, timeout: float | None = None) -> Any:
        return await self._step("FETCH", lambda: self._real.fetch(n))

    async def fetchrow(self, *, timeout: float | None = None) -> Any:
        return await self._step("FETCH", self._real.fetchrow)

    async def forward(self, n: int, *, timeout: float | None = None) -> Any:
        return await self._step("FORWARD", lambda: self._real.forward(n))

    async def _step(self, verb: str, work: Callable[[], Awaitable[Any]]) -> Any:
        return await self._conn._run(f"{verb} {self._query}", lambda _: work(), self._timeout)


class SimulatedPool(asyncpg.Pool):  # type: ignore[type-arg]
    """The pool of one process."""

    def __init__(self, postgres: Postgres, faults: Faults, *, size: int) -> None:
        self.postgres, self.faults, self.size = postgres, faults, size
        self.sessions: set[Any] = set()
        self._free: list[Any] = []
        self._turn = asyncio.Semaphore(size)

    def __del__(self) -> None:
        """Nothing of asyncpg's own pool was opened."""

    @override
    async def __aenter__(self) -> Self:
        return self

    @override
    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def pause(self) -> None:
        """Let time pass, and others run."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulationLoop)
        await asyncio.sleep(loop.random.random() * LATENCY_SECONDS)

    async def _acquire(self, timeout: float | None) -> Any:
        await self.pause()
        fate = self.faults.draw("ACQUIRE")
        if fate is not Fate.NONE:
            raise asyncpg.TooManyConnectionsError("sorry, too many clients already")
        async with asyncio.timeout(timeout):
            await self._turn.acquire()
        real = self._free.pop() if self._free else self.postgres.session()
        self.sessions.add(real)
        return SimulatedConnection(self, real)

    @override
    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        """Take a connection back; one in a transaction is reset."""
        real, connection._real = connection._real, None
        connection._pool_release_ctr += 1
        if real is not None:
            self.sessions.discard(real)
            if real.is_in_transaction():
                self.postgres.end(real)
            else:
                self._free.append(real)
        self._turn.release()

    @override
    async def close(self) -> None:
        self.terminate()

    @override
    def terminate(self) -> None:
        """End all sessions, as when their process has died."""
        for real in [*sorted(self.sessions, key=lambda each: int(each.get_server_pid())), *self._free]:
            self.postgres.end(real)
        self.sessions, self._free = set(), []

    @override
    def get_size(self) -> int:
        return len(self.sessions) + len(self._free)

    @override
    def get_idle_size(self) -> int:
        return len(self._free)

    @override
    def get_max_size(self) -> int:
        return self.size

    @override
    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        async with self.acquire() as conn:
            return await conn.execute(query, *args, timeout=timeout)

    @override
    async def executemany(self, command: str, args: Any, *, timeout: float | None = None) -> None:
        async with self.acquire() as conn:
            await conn.executemany(command, args, timeout=timeout)

    @override
    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        async with self.acquire() as conn:
            return await conn.fetch(query, *args, **options)

    @override
    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        async with self.acquire() as conn:
            return await conn.fetchrow(query, *args, **options)

    @override
    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        async with self.acquire() as conn:
            return await conn.fetchval(query, *args, **options)

    @override
    async def copy_records_to_table(self, table_name: str, **options: Any) -> Any:
        async with self.acquire() as conn:
            return await conn.copy_records_to_table(table_name, **options)
