"""Runs scheduled jobs when they are due: in the worker, and as the test clock advances.

A job is completed when its runner returns; if a process dies before that, the next one runs it
again, so a runner works through commands whose keys derive from the object.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from billfold.ledger.bank import Bank
from billfold.ledger.bank import bank_customer_id as bank_customer_id  # noqa: PLC0414 - of a seed without a bank
from billfold.ledger.commands import Books, Command, Outcome
from billfold.ledger.context import Context
from billfold.ledger.types import ScheduledJob
from billfold.platform.database.background_work import forget
from billfold.platform.database.connection import Db
from billfold.platform.database.distribution import await_prepared
from billfold.platform.database.pool import uuid_array
from billfold.platform.dates import format_eastern
from billfold.platform.errors import Unavailable
from billfold.platform.telemetry.tracing import tracing

_SCHEDULE = "SELECT scheduled_job_set($1)"
_COMPLETE = "SELECT scheduled_job_complete($1, $2::text::uuid[], $3)"


async def schedule(conn: Db, jobs: Iterable[ScheduledJob]) -> None:
    """Schedule these jobs; one that is already scheduled is moved."""
    if made := list(jobs):
        await conn.execute(_SCHEDULE, made)


async def cancel(conn: Db, kind: str, *object_ids: UUID) -> None:
    """Cancel the jobs of this kind for these objects, as far as they are scheduled."""
    await conn.execute(_COMPLETE, kind, uuid_array(object_ids), None)


async def complete(conn: Db, done: Sequence[ScheduledJob]) -> None:
    """Remove jobs of one kind that were run; one that was rescheduled in the meantime stays."""
    if done:
        objects, instants = uuid_array(each.object_id for each in done), [each.at for each in done]
        await conn.execute(_COMPLETE, done[0].kind, objects, instants)


Key = TypeVar("Key")
Result = TypeVar("Result")
BATCH_SIZE = 200
"""Number of jobs of one kind and instant that run concurrently."""

_NEXT_JOB = "SELECT min(due_at) FROM scheduled_job WHERE kind = ANY($1::text[])"
_DUE_JOBS = """
SELECT a.kind, a.object_id, a.customer_id, a.due_at FROM scheduled_job a
 WHERE a.due_at <= $1 AND a.kind = ANY($2::text[])
   AND a.kind || ' ' || a.object_id <> ALL($3::text[])
 ORDER BY a.due_at, a.kind, a.object_id LIMIT $4
"""
_UNKNOWN_KINDS = """
SELECT kind, count(*) AS jobs, min(due_at) AS since FROM scheduled_job
 WHERE due_at <= $1 AND kind <> ALL($2::text[]) GROUP BY kind
"""


class WorkResults(msgspec.Struct, Generic[Key]):
    """Work done, counted by kind, and the customers or jobs that failed."""

    happened: Counter[str]
    failed: dict[Key, Exception]

    async def gather(self, work: Mapping[Key, Awaitable[Result]]) -> dict[Key, Result]:
        """Run these concurrently, collect failures, and return the other results."""
        done: dict[Key, Result] = {}
        results = await asyncio.gather(*work.values(), return_exceptions=True)
        for key, result in zip(work, results, strict=True):
            if isinstance(result, Exception):
                self.failed[key] = result
            elif isinstance(result, BaseException):
                raise result
            else:
                done[key] = result
        return done


async def next_scheduled_at(bank: Bank, kinds: Collection[str] | None = None) -> datetime | None:
    """Return when the next job is due, of all kinds or some, if there is any."""
    at: datetime | None = await bank.pool.fetchval(_NEXT_JOB, list(bank.job_runners if kinds is None else kinds))
    return at


async def run_scheduled_jobs(
    bank: Bank, by: datetime, *, kinds: Collection[str] | None = None, put_aside: Collection[str] = ()
) -> WorkResults[ScheduledJob]:
    """Run every job due by `by`, or those of some kinds, in order; one that fails stays and blocks no other.

    Jobs of one instant and kind run concurrently. Those in `put_aside`, by their names, are skipped.
    If a service that a kind of job needs is unavailable, the rest of that kind waits for the next run: each would
    wait for it again, and all other jobs with them.
    """
    results = WorkResults[ScheduledJob](Counter(), {})
    left, there = set(bank.job_runners if kinds is None else kinds), set[ScheduledJob]()
    while left:
        excluded = [*put_aside, *(each.name for each in results.failed)]
        rows = await bank.pool.fetch(_DUE_JOBS, by, list(left), excluded, BATCH_SIZE)
        due = [ScheduledJob(*row) for row in rows]
        if not due:
            break
        batch = [each for each in due if (each.at, each.kind) == (due[0].at, due[0].kind)]
        if not there.issuperset(batch):
            # A job is seen before what other nodes have prepared in its transaction, as the approval of its object.
            if not await results.gather({batch[0]: await_prepared(bank.pool)}):
                break  # no other job can begin either, and each kind would wait as long
            there = set(due)
        done = await results.gather({each: run_job(bank, each) for each in batch})
        await complete(bank.pool, list(done))
        results.happened[batch[0].kind] += len(done)
        left -= {each.kind for each, error in results.failed.items() if isinstance(error, Unavailable)}
    return results


async def count_unknown_jobs(bank: Bank, by: datetime) -> dict[str, str]:
    """Return how many jobs are due of each kind that this release does not know, in words."""
    rows = await bank.pool.fetch(_UNKNOWN_KINDS, by, list(bank.job_runners))
    return {kind: f"{jobs} jobs are due since {format_eastern(since)}" for kind, jobs, since in rows}


async def run_job(bank: Bank, job: ScheduledJob) -> None:
    """Run a job now, whether it was scheduled or not."""
    with tracing.span(f"job {job.kind}", received={}) if tracing.is_on else nullcontext():
        await bank.job_runners[job.kind](bank, job)


def report_due_work(books: Books, cmd: CatchUp, ctx: Context) -> Outcome:
    """Return the work that the engine did before this rule, counted by kind."""
    del ctx
    happened: Counter[str] = Counter()
    for customer_id in cmd.customers:
        if customer_id in books:
            happened.update(books[customer_id].draft.happened)
    return {"happened": dict(happened)}


class CatchUp(Command, frozen=True, kw_only=True):
    """Bring these customers up to date and do nothing else. Leaves no command row."""

    rule = report_due_work
    is_recorded = False


BATCH_MAX = 100
"""Number of customers brought up to date in one batch."""
DUE_WORK_LOCK = 0x64756500  # "due"
"""The advisory lock of the one process that does due work or moves the clock."""
DUE_HELP_LOCKS = range(DUE_WORK_LOCK + 1, DUE_WORK_LOCK + 20)
"""Those of processes that help it with customers; who moves the clock holds them all."""
LONG_JOBS_LOCK = 0x6C6F6E67  # "long"
"""The advisory lock of the one process that runs jobs for which due work does not wait, or moves the clock."""
BATCHES_LOCK = 0x62617463  # "batc"
"""That of the one that runs batches. While the clock stands still, one that two processes run can lose its job."""

_FAILING = """
SELECT h.customer_id, h.due_at, f.tries, f.error, f.again_at
  FROM failed_work f JOIN ledger_head h ON h.customer_id = f.item::uuid WHERE f.kind = $1 ORDER BY h.due_at
"""
_PARALLEL_BATCHES = 2  # one batch is planned while the other commits
_READ_MAX = 10 * BATCH_MAX
_DUE_CUSTOMERS = """
SELECT customer_id FROM ledger_head
 WHERE due_at <= $1 AND customer_id <> ALL($2::uuid[]) ORDER BY due_at LIMIT $3 OFFSET $4
"""
_NEXT_DUE = "SELECT min(due_at) FROM ledger_head"
DUE_WORK: Final = "due work"
"""The kind of background work under which customers are recorded whose due work fails."""
SET_APART_TRIES: Final = 3
"""Failures in a row, over a minute and a half, after which the bank closes its days without a customer."""
SET_APART: Final = f"""
SELECT item::uuid AS customer_id FROM failed_work WHERE kind = '{DUE_WORK}' AND tries >= {SET_APART_TRIES}
"""


async def next_due(conn: Db) -> datetime | None:
    """Return the first instant at which anything is due, the end of the bank's own day included."""
    due: datetime | None = await conn.fetchval(_NEXT_DUE)
    return due


async def catch_up_due(
    bank: Bank, by: datetime, *, put_aside: Collection[str] = (), ahead: int = 0
) -> WorkResults[UUID]:
    """Bring every customer with work due by `by` up to the bank's now, which is not earlier.

    A customer for whom it fails stays due and does not block the others. Those in `put_aside` are skipped, and
    the first customers for each process `ahead` of this one. Two processes that take one do its work once all the same.
    """
    result = WorkResults[UUID](Counter(), {})
    excluded = {bank.own_id, *map(UUID, put_aside)}
    lock, waiting = asyncio.Lock(), list[UUID]()

    async def run_batches() -> None:
        while True:
            async with lock:
                if not waiting:
                    rows = await bank.pool.fetch(_DUE_CUSTOMERS, by, list(excluded), _READ_MAX, ahead * _READ_MAX)
                    waiting.extend(row["customer_id"] for row in rows)
                customers, waiting[:BATCH_MAX] = waiting[:BATCH_MAX], ()
                excluded.update(customers)
            if not customers:
                return
            await _catch_up(bank, customers, result)
            excluded.difference_update(set(customers) - result.failed.keys())

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_PARALLEL_BATCHES):
            tasks.create_task(run_batches())
    return result


async def _catch_up(bank: Bank, customers: Iterable[UUID], result: WorkResults[UUID]) -> None:
    work = {each: bank.engine.submit(CatchUp(caller="due", key=each, customers=(each,))) for each in customers}
    for answer in (await result.gather(work)).values():
        result.happened.update(answer.outcome["happened"])


class FailingCustomer(NamedTuple):
    """A customer whose due work fails, since when it is due, and its last failure. Set apart after some tries."""

    customer_id: UUID
    due_at: datetime
    tries: int
    error: str
    again_at: datetime


async def list_failing(conn: Db) -> list[FailingCustomer]:
    """Return the customers whose due work fails, the one due for longest first."""
    return [FailingCustomer(*row) for row in await conn.fetch(_FAILING, DUE_WORK)]


async def retry_due_work(bank: Bank, customers: Collection[UUID]) -> WorkResults[UUID]:
    """Bring failing customers up to date now: each thing is booked at the instant at which it was due."""
    result = WorkResults[UUID](Counter(), {})
    await _catch_up(bank, customers, result)
    await forget(bank.pool, DUE_WORK, [str(each) for each in customers if each not in result.failed])
    return result
