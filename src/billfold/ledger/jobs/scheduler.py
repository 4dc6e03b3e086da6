"""Scheduled jobs are run when they are due: by the worker, and by the test clock as it advances.

A job is completed when its runner returns; of a process that dies before that the next runs it
again, so a runner works through commands named after the object.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Collection, Mapping
from contextlib import nullcontext
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from billfold.ledger.bank import Bank
from billfold.ledger.jobs.store import complete
from billfold.ledger.types import ScheduledJob
from billfold.platform.errors import Unavailable
from billfold.platform.telemetry.tracing import tracing

Key = TypeVar("Key")
Result = TypeVar("Result")
BATCH_SIZE = 200
"""How many jobs of one kind and instant run concurrently."""

_NEXT = "SELECT min(due_at) FROM scheduled_job WHERE kind = ANY($1::text[])"
_DUE = """
SELECT a.kind, a.object_id, a.customer_id, a.due_at FROM scheduled_job a
 WHERE a.due_at <= $1 AND a.kind = ANY($2::text[])
   AND a.kind || ' ' || a.object_id <> ALL($3::text[])
 ORDER BY a.due_at, a.kind, a.object_id LIMIT $4
"""


class WorkResults(msgspec.Struct, Generic[Key]):
    """What was done, counted by kind, and what failed: customers or jobs."""

    happened: Counter[str]
    failed: dict[Key, Exception]

    async def gather(self, work: Mapping[Key, Awaitable[Result]]) -> dict[Key, Result]:
        """Do this concurrently, keep what failed, and return the other results."""
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


async def next_scheduled_at(bank: Bank) -> datetime | None:
    """Return when the next job is due, if there is any."""
    at: datetime | None = await bank.pool.fetchval(_NEXT, list(bank.job_runners))
    return at


async def run_scheduled_jobs(
    bank: Bank, by: datetime, *, kinds: Collection[str] | None = None, put_aside: Collection[str] = ()
) -> WorkResults[ScheduledJob]:
    """Run every job due by `by`, or those of some kinds, in order; one that fails stays and blocks no other.

    Jobs of one instant and kind run concurrently. Those `put_aside`, by their names, are left out.
    When what a kind of job needs does not answer, the rest of that kind waits for the next run: each would
    wait for it again, and all other jobs with them.
    """
    results = WorkResults[ScheduledJob](Counter(), {})
    left = set(bank.job_runners if kinds is None else kinds)
    while left:
        excluded = [*put_aside, *(each.name for each in results.failed)]
        rows = await bank.pool.fetch(_DUE, by, list(left), excluded, BATCH_SIZE)
        due = [ScheduledJob(*row) for row in rows]
        if not due:
            break
        batch = [each for each in due if (each.at, each.kind) == (due[0].at, due[0].kind)]
        done = await results.gather({each: run_job(bank, each) for each in batch})
        await complete(bank.pool, list(done))
        results.happened[batch[0].kind] += len(done)
        left -= {each.kind for each, error in results.failed.items() if isinstance(error, Unavailable)}
    return results


async def run_job(bank: Bank, job: ScheduledJob) -> None:
    """Run a job now, whether it was scheduled or not."""
    with tracing.span(f"job {job.kind}", received={}) if tracing.is_on else nullcontext():
        await bank.job_runners[job.kind](bank, job)
