"""PostgreSQL as a simulation uses it: one statement at a time, in an order that no real latency decides.

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
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any

import asyncpg
import uvloop

from billfold.platform.database.pool import create_pool
from simulation.loop import Process

SESSIONS_MAX = 48
_QUICK_SECONDS = 0.01
"""Real time after which a statement that is not answered may be waiting for a lock."""
_BLOCKED = "SELECT pid FROM unnest($1::int[]) pid WHERE cardinality(pg_blocking_pids(pid)) > 0"
_TERMINATE = "SELECT pg_terminate_backend($1, 10000)"
_CHAIN = """
WITH RECURSIVE chain AS (SELECT unnest(pg_blocking_pids($1)) pid
  UNION SELECT unnest(pg_blocking_pids(pid)) FROM chain)
SELECT EXISTS (SELECT 1 FROM chain WHERE pid = $1)
"""
_BY_DRIVER = re.compile("DECLARE ")
_OF_SERVER = re.compile("clock_timestamp|pg_current|xid|data_key|event_reader|pg_postmaster")
_NEW_SESSION = "ROLLBACK; SELECT pg_advisory_unlock_all()"


class Postgres:
    """The real server. `trace` is a digest of every statement with its answer, in order."""

    def __init__(self, dsn: str, role: str) -> None:
        self._dsn, self._role = dsn, role
        self._loop = uvloop.new_event_loop()
        self.trace = hashlib.blake2b(digest_size=16)
        self.statements = 0
        self.log: Callable[[str], None] | None = None
        self._pending: list[Statement] = []
        self._idle: list[Any] = []

    def open(self) -> None:
        """Connect."""
        self.monitor = self.call(asyncpg.connect(self._dsn))
        self._pool = self.call(create_pool(self._dsn, min_size=1, max_size=SESSIONS_MAX, role=self._role))

    def let_go(self) -> None:
        """Let stopped sessions hear that they are to end: a failed simulation leaves some."""
        for each in self._pending:
            os.kill(each.pid, signal.SIGCONT)

    def call(self, work: Any) -> Any:
        """Run a coroutine on the loop of the sessions, within the one that is running and stands still meanwhile."""
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
            os.kill(waiting[0].pid, signal.SIGCONT)
            self.call(self.monitor.execute(_TERMINATE, real.get_server_pid()))
            self._wait(waiting[0])
            self.call(self._pool.release(real))
        self.settle()

    def run(self, real: Any, work: Callable[[], Awaitable[Any]]) -> Statement:
        """Run one statement until it is answered or waits for a lock."""
        statement = Statement(real, self._loop.create_task(_awaited(work)))
        self._wait(statement)
        if not statement.is_done:
            self._hold(statement)
        elif statement.future.exception() or not real.is_in_transaction():
            self.settle()
        return statement

    def _hold(self, statement: Statement) -> None:
        """Stop a statement that waits for a lock: if one lock sets several free, they go in their order."""
        os.kill(statement.pid, signal.SIGSTOP)
        if statement not in self._pending:
            self._pending.append(statement)
        if self.call(self.monitor.fetchval(_CHAIN, statement.pid)):
            self._pending.remove(statement)
            self._interrupt(statement, asyncpg.DeadlockDetectedError("deadlock detected"))
            statement.tell()

    def _interrupt(self, statement: Statement, error: Exception) -> None:
        os.kill(statement.pid, signal.SIGCONT)
        self.call(self.monitor.execute("SELECT pg_cancel_backend($1)", statement.pid))
        self._wait(statement)
        statement.error = error

    def settle(self) -> None:
        """Let the pending statements run whose lock is free, oldest first."""
        while self._pending:
            blocked = self.call(self.monitor.fetch(_BLOCKED, [each.pid for each in self._pending]))
            held = {row["pid"] for row in blocked}
            free = next((each for each in self._pending if each.pid not in held), None)
            if free is None:
                return
            os.kill(free.pid, signal.SIGCONT)
            self._wait(free)
            if free.is_done:
                self._pending.remove(free)
                free.tell()
            else:
                self._hold(free)

    def give_up(self, statement: Statement) -> None:
        """Cancel a statement that waits for a lock: the task that asked has gone."""
        if statement in self._pending:
            self._pending.remove(statement)
            self._interrupt(statement, asyncpg.QueryCanceledError("canceling statement due to user request"))

    def _wait(self, statement: Statement) -> None:
        pause = _QUICK_SECONDS
        while True:
            self.call(asyncio.wait((statement.future,), timeout=pause))
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
        if _is_unlike(query):
            answer = type(answer).__name__  # it differs from run to run, and decides nothing
        line = f"{process.name}|{query}|{answer!r}"
        self.trace.update(line.encode())
        if self.log is not None:
            self.log(f"{self.statements} {process.name} {' '.join(query.split())} -> {answer!r}"[:2000])


@lru_cache(1000)
def _is_unlike(query: str) -> bool:
    return bool(_BY_DRIVER.match(query) or _OF_SERVER.search(query))


async def _awaited(work: Callable[[], Awaitable[Any]]) -> Any:
    return await work()


class Statement:
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
