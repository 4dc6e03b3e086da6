"""A distributed bank read at one cut of all its nodes, its customers by several processes.

Every batch shares the lock of the clock until it is committed on all nodes. While that lock is held alone, for the
moment that it takes to begin a transaction on each node, no batch is half there. Then transfers go on.
"""

import asyncio
import multiprocessing
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple
from uuid import UUID

from billfold.bills.store import load_market
from billfold.platform.database.business_clock import no_bookings
from billfold.platform.database.checks import Findings
from billfold.platform.database.connection import Connection
from billfold.platform.database.pool import create_pool
from billfold.platform.errors import Unavailable
from billfold.verify.customers import EVERYBODY, LedgerWalk, ProgressCallback
from billfold.verify.streams import Part

_CUSTOMERS_MAX = 1_000
"""Customers of a part: Citus brings the rows of all of them to the coordinator at once, and sorts them there."""
_PARTS_PER_PROCESS = 8
"""Parts are this small at least, so that the processes end together."""
_TRIES, _PAUSE_SECONDS = 90, 1.0  # Citus ends what a dead node left within a minute

# One connection to each node, hence one snapshot of it, until the transaction ends.
_ONE_SNAPSHOT = """
SET LOCAL citus.max_adaptive_executor_pool_size = 1;
SET LOCAL citus.propagate_set_commands = 'local';
SET LOCAL citus.max_intermediate_result_size = -1
"""
_FROM_EVERY_SHARD = "SELECT customer_id FROM ledger_head LIMIT 1"
# Transactions that are committed on the coordinator, or not, and not yet ended on another node.
_HALF_ENDED = """
SELECT coalesce(sum(result::int), 0) FROM run_command_on_workers(
  'SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()')
"""
_NODES = """
SELECT count(DISTINCT groupid) FROM pg_dist_placement JOIN pg_dist_shard USING (shardid)
 WHERE logicalrelid = 'ledger_head'::regclass
"""
_SIZE = "SELECT count(*), coalesce(sum(version), 0)::bigint FROM ledger_head"
_BOUNDS = """
SELECT customer_id FROM (SELECT customer_id, row_number() OVER (ORDER BY customer_id) AS place FROM ledger_head) h
 WHERE place % $1 = 0 ORDER BY customer_id
"""


class PartOfWalk(NamedTuple):
    """What a process found of a part: findings, totals by kind and asset, the number of commits."""

    findings: Findings
    totals: Counter[tuple[str, str]]
    commits: int


@asynccontextmanager
async def one_snapshot(conn: Connection) -> AsyncIterator[None]:
    """Begin a transaction that reads the coordinator and every node as they are now."""
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        await conn.execute(_ONE_SNAPSHOT)
        await conn.fetchval(_FROM_EVERY_SHARD)
        yield


class Walkers:
    """Processes that walk over customers in the same cut as the transaction of `conn`."""

    def __init__(self, conn: Connection, processes: "Sequence[_Process]") -> None:
        self._conn = conn
        self._processes = processes

    async def walk(
        self, findings: Findings, progress: ProgressCallback | None
    ) -> Callable[[], Awaitable[Counter[tuple[str, str]]]]:
        """Begin to check every customer. Returns a function that waits for the end and returns the totals."""
        parts, commits = await self._parts()
        waiting = iter(enumerate(parts))
        walked: dict[int, PartOfWalk] = {}

        async def run(process: _Process) -> None:
            for place, part in waiting:
                walked[place] = await process.ask(part)
                if progress is not None:
                    progress(sum(each.commits for each in walked.values()), commits)

        running = asyncio.gather(*map(run, self._processes))

        async def end() -> Counter[tuple[str, str]]:
            await running
            totals: Counter[tuple[str, str]] = Counter()
            for _, each in sorted(walked.items()):
                findings.extend(each.findings)
                totals.update(each.totals)
            return totals

        return end

    async def _parts(self) -> tuple[list[Part], int]:
        customers, commits = await self._conn.fetchrow(_SIZE) or (0, 0)
        width = min(_CUSTOMERS_MAX, customers // (_PARTS_PER_PROCESS * len(self._processes)) + 1)
        bounds = [row["customer_id"] for row in await self._conn.fetch(_BOUNDS, width)]
        firsts = [EVERYBODY.first, *(UUID(int=bound.int + 1) for bound in bounds)]
        return [Part(*each) for each in zip(firsts, [*bounds, EVERYBODY.last], strict=True)], commits


@asynccontextmanager
async def one_cut(conn: Connection, dsn: str | None) -> AsyncIterator[Walkers | None]:
    """Begin a transaction on this connection and on one of each process, all at one cut of the bank.

    There is a process for each node that has customers, as far as there are cores; none without an address.
    Raises Unavailable if a node has a transaction that does not end.
    """
    async with AsyncExitStack() as stack:
        nodes = 0 if dsn is None else min(await conn.fetchval(_NODES), os.cpu_count() or 1)
        processes = [await stack.enter_async_context(_started(dsn)) for _ in range(nodes)]
        for _ in range(_TRIES):
            async with no_bookings(conn):
                if not await conn.fetchval(_HALF_ENDED):
                    await stack.enter_async_context(one_snapshot(conn))
                    await asyncio.gather(*(process.ask("begin") for process in processes))
                    break
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            raise Unavailable("A node has a transaction that does not end.")
        yield Walkers(conn, processes) if processes else None


class _Process:
    """Another process, which answers each question in turn."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def ask(self, question: object) -> Any:  # noqa: ANN401 - by the question
        """Return the answer to the next question."""
        self._pipe.send(question)
        answer = await asyncio.to_thread(self._pipe.recv)
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def _started(dsn: str | None) -> AsyncIterator[_Process]:
    """Start a process that is connected to the database."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(dsn, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        other = _Process(ours)
        await other.ask("connect")
        yield other
    finally:
        process.terminate()
        await asyncio.to_thread(process.join)
        ours.close()


def _serve(dsn: str, pipe: Pipe) -> None:
    try:
        asyncio.run(_walk(dsn, pipe))
    except EOFError:
        return  # the other process is gone
    except Exception as error:  # noqa: BLE001 - raised there
        pipe.send(RuntimeError(repr(error)))


async def _walk(dsn: str, pipe: Pipe) -> None:
    """Answer when it is connected, when its snapshot is taken, then the parts."""
    async with await create_pool(dsn, max_size=1) as pool, pool.acquire() as conn:
        pipe.recv()
        pipe.send(None)
        pipe.recv()
        async with one_snapshot(conn):
            pipe.send(None)
            market = await load_market(conn)
            await conn.execute("SET LOCAL enable_seqscan = off")
            while True:
                walk = LedgerWalk(conn, Findings(), market, None)
                await walk.check_customers(pipe.recv())
                pipe.send(PartOfWalk(walk.found, walk.totals, walk.done))
