"""A distributed bank read at one cut of all its nodes, its customers by several processes."""

import asyncio
import multiprocessing
import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from multiprocessing.connection import Connection as Pipe
from typing import Any
from uuid import UUID

from billfold.bills.store import load_market
from billfold.platform.database.checks import Findings
from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import begin_snapshots, one_snapshot
from billfold.platform.database.pool import create_pool
from billfold.verify.customers import EVERYBODY, LedgerWalk, ProgressCallback
from billfold.verify.streams import Part

_CUSTOMERS_MAX = 1_000
"""Customers of a part: Citus brings the rows of all of them to the coordinator at once, and sorts them there."""
_PARTS_PER_PROCESS = 2
"""Parts are this small at least, so that the processes end together."""
_TRIES = 90  # a second apart: Citus ends what a dead node left within a minute

_NODES = """
SELECT count(DISTINCT groupid) FROM pg_dist_placement JOIN pg_dist_shard USING (shardid)
 WHERE logicalrelid = 'ledger_head'::regclass
"""
_SIZE = "SELECT count(*) AS customers, coalesce(sum(version), 0)::bigint AS commits FROM ledger_head"
_BOUNDS = """
SELECT customer_id FROM (SELECT customer_id, row_number() OVER (ORDER BY customer_id) AS place FROM ledger_head) h
 WHERE place % $1 = 0 ORDER BY customer_id
"""


class Process:
    """A process with a connection of its own, which answers each question in turn."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def ask(self, question: object = None) -> Any:  # noqa: ANN401 - by the question
        """Return the answer to the next question."""
        self._pipe.send(question)
        answer = await asyncio.to_thread(self._pipe.recv)
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def one_cut(conn: Connection, dsn: str | None, *, distributed: bool) -> AsyncIterator[list[Process]]:
    """Begin a transaction on this connection and on one of each process, all at one cut of the bank.

    There is a process for each node that has customers, as far as there are cores; none without an address.
    Raises Unavailable as `one_snapshot` does.
    """
    async with AsyncExitStack() as stack:
        nodes = 0 if dsn is None or not distributed else min(await conn.fetchval(_NODES), os.cpu_count() or 1)
        processes = [await stack.enter_async_context(_started(dsn)) for _ in range(nodes)]

        async def begin() -> None:
            await asyncio.gather(*(process.ask() for process in processes))

        await stack.enter_async_context(one_snapshot(conn, distributed=distributed, begin_others=begin, tries=_TRIES))
        yield processes


async def walk_side_by_side(
    processes: Sequence[Process], conn: Connection, findings: Findings, progress: ProgressCallback | None
) -> Counter[tuple[str, str]]:
    """Check every customer. Returns the totals of all accounts according to the log, by kind and asset."""
    customers, all_commits = await conn.fetchrow(_SIZE) or (0, 0)
    width = min(_CUSTOMERS_MAX, customers // (_PARTS_PER_PROCESS * len(processes)) + 1)
    bounds = [row["customer_id"] for row in await conn.fetch(_BOUNDS, width)]
    firsts = [EVERYBODY.first, *(UUID(int=bound.int + 1) for bound in bounds)]
    waiting = enumerate(zip(firsts, [*bounds, EVERYBODY.last], strict=True))
    walked: dict[int, tuple[Findings, Counter[tuple[str, str]], int]] = {}

    async def run(process: Process) -> None:
        for place, part in waiting:
            walked[place] = await process.ask(Part(*part))
            if progress is not None:
                progress(sum(commits for *_, commits in walked.values()), all_commits)

    await asyncio.gather(*map(run, processes))
    totals: Counter[tuple[str, str]] = Counter()
    for _, (found, held, _) in sorted(walked.items()):
        findings.extend(found)
        totals.update(held)
    return totals


@asynccontextmanager
async def _started(dsn: str | None) -> AsyncIterator[Process]:
    """Start a process that is connected to the database."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    started = context.Process(target=_serve, args=(dsn, theirs), daemon=True)
    started.start()
    theirs.close()
    try:
        process = Process(ours)
        await process.ask()
        yield process
    finally:
        started.terminate()
        await asyncio.to_thread(started.join)
        ours.close()


def _serve(dsn: str, pipe: Pipe) -> None:
    try:
        asyncio.run(_walk(dsn, pipe))
    except EOFError:
        return  # the process that asks is gone
    except Exception as error:  # noqa: BLE001 - raised there
        pipe.send(RuntimeError(repr(error)))


async def _walk(dsn: str, pipe: Pipe) -> None:
    """Answer when it is connected, when its snapshot is taken, then for each part."""
    async with await create_pool(dsn, max_size=1) as pool, pool.acquire() as conn:
        pipe.recv()
        pipe.send(None)
        pipe.recv()
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            await begin_snapshots(conn)
            pipe.send(None)
            market = await load_market(conn)
            await conn.execute("SET LOCAL enable_seqscan = off")
            while True:
                walk = LedgerWalk(conn, Findings(), market, None)
                await walk.check_customers(pipe.recv())
                pipe.send((walk.found, walk.totals, walk.done))
