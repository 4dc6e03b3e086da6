"""The pool and the connections of a simulated process: around each statement others run, and a fate is drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Self

import asyncpg
from asyncpg.transaction import Transaction
from typing_extensions import override

from billfold.platform.database.shortage import Patience
from simulation.faults import Fate, Faults
from simulation.loop import Process, SimulationLoop, current_process
from simulation.postgres import Postgres, Statement

STATEMENT_SECONDS = 60.0
"""Virtual time for which a statement may wait for a lock, as `create_pool` says."""
LATENCY_SECONDS = 0.003
_RAISE = "DO $$ BEGIN RAISE EXCEPTION '{}' USING ERRCODE = '{}'; END $$"


def _statement(name: str) -> Any:
    async def run(self: SimulatedConnection, query: str, *args: Any, timeout: float | None = None, **told: Any) -> Any:
        shown = f"COPY {query}" if name.startswith("copy") else query
        return await self._run(shown, lambda real: getattr(real, name)(query, *args, **told), timeout)

    return run


class SimulatedConnection:
    """A connection of one process, with the methods of asyncpg's that the bank uses."""

    def __init__(self, pool: SimulatedPool, real: Any) -> None:
        self._pool, self._real = pool, real
        self._top_xact, self._pool_release_ctr, self._savepoints = None, 0, 0
        self._protocol = SimpleNamespace(is_in_transaction=self.is_in_transaction)

    execute, executemany = _statement("execute"), _statement("executemany")
    fetch, fetchrow, fetchval = _statement("fetch"), _statement("fetchrow"), _statement("fetchval")
    copy_records_to_table = _statement("copy_records_to_table")

    def transaction(self, *, isolation: Any = None, readonly: bool = False, deferrable: bool = False) -> Transaction:
        connection: Any = self
        return Transaction(connection, isolation, readonly, deferrable)

    def cursor(self, query: str, *args: Any, timeout: float | None = None, prefetch: int | None = None) -> Any:
        return _Cursor(self, query, self._real.cursor(query, *args, prefetch=prefetch), timeout)

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
        """Draw the fate, run the statement, let others run."""
        pool, process = self._pool, current_process.get()
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

    async def _blocked(self, statement: Statement, seconds: float) -> None:
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

    def __init__(self, conn: SimulatedConnection, query: str, real: Any, timeout: float | None) -> None:
        self._conn, self._query, self._real, self._timeout = conn, query, real, timeout

    def __await__(self) -> Any:
        return self._open().__await__()

    async def _open(self) -> _Cursor:
        made = self._real
        self._real = await self._step("DECLARE", lambda: made)
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

    async def _step(self, verb: str, work: Callable[[], Awaitable[Any]]) -> Any:
        return await self._conn._run(f"{verb} {self._query}", lambda _: work(), self._timeout)


def _of_pool(name: str) -> Any:
    async def run(self: SimulatedPool, *args: Any, **told: Any) -> Any:
        async with self.acquire() as conn:
            return await getattr(conn, name)(*args, **told)

    return run


class SimulatedPool(asyncpg.Pool):
    """The pool of one process."""

    def __init__(self, postgres: Postgres, faults: Faults, *, size: int) -> None:
        self.postgres, self.faults, self.size = postgres, faults, size
        self.sessions: set[Any] = set()
        self._free: list[Any] = []
        self._turn = asyncio.Semaphore(size)
        self._patience = Patience()

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
        while self.faults.draw("ACQUIRE") is not Fate.NONE:
            await self._patience.wait(asyncpg.TooManyConnectionsError("sorry, too many clients already"))
        self._patience.end()
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

    execute, executemany = _of_pool("execute"), _of_pool("executemany")
    fetch, fetchrow, fetchval = _of_pool("fetch"), _of_pool("fetchrow"), _of_pool("fetchval")
    copy_records_to_table = _of_pool("copy_records_to_table")
