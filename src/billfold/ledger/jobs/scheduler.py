"""Scheduled jobs are run when they are due: by the worker, and by the test clock as it advances.

A job is completed when its runner returns; of a process that dies before that the next runs it
again, so a runner works through commands named after the object.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from billfold.ledger.jobs.store import let_go
from billfold.ledger.jobs.types import Appointment

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

AT_ONCE = 200
"""How many appointments of one kind and instant are kept side by side."""

_NEXT = "SELECT min(at) FROM agenda WHERE kind = ANY($1::text[])"
_DUE = """
SELECT a.kind, a.object_id, a.customer_id, a.at FROM agenda a
 WHERE a.at <= $1 AND a.kind = ANY($2::text[])
   AND NOT EXISTS (SELECT 1 FROM unnest($3::text[], $4::uuid[]) AS f(kind, object_id)
                    WHERE f.kind = a.kind AND f.object_id = a.object_id)
 ORDER BY a.at, a.kind, a.object_id LIMIT $5
"""


class Kept(msgspec.Struct):
    """What was done, counted by kind, and the appointments with which it went wrong."""

    happened: Counter[str]
    failed: dict[Appointment, Exception]


async def next_appointment(bank: Bank) -> datetime | None:
    """Return when the first appointment is, if there is any."""
    at: datetime | None = await bank.pool.fetchval(_NEXT, list(bank.job_runners))
    return at


async def keep_appointments(bank: Bank, by: datetime) -> Kept:
    """Keep every appointment up to `by`, in order; one that fails stays and holds up no other.

    Those of one instant and kind are kept side by side.
    """
    kept = Kept(Counter(), {})
    while bank.job_runners:
        failed = list(kept.failed)
        kinds, failed_kinds = list(bank.job_runners), [each.kind for each in failed]
        failed_ids = [each.object_id for each in failed]
        rows = await bank.pool.fetch(_DUE, by, kinds, failed_kinds, failed_ids, AT_ONCE)
        due = [Appointment(*row) for row in rows]
        if not due:
            break
        together = [each for each in due if (each.at, each.kind) == (due[0].at, due[0].kind)]
        await _keep(bank, together, kept)
    return kept


async def run_job(bank: Bank, job: Appointment) -> None:
    """Run a job now, whether it was scheduled or not."""
    await bank.job_runners[job.kind](bank, job)


async def _keep(bank: Bank, together: Sequence[Appointment], kept: Kept) -> None:
    ends = await asyncio.gather(*(run_job(bank, each) for each in together), return_exceptions=True)
    done = []
    for each, end in zip(together, ends, strict=True):
        if isinstance(end, Exception):
            kept.failed[each] = end
        elif isinstance(end, BaseException):
            raise end
        else:
            done.append(each)
    await let_go(bank.pool, done)
    kept.happened[together[0].kind] += len(done)
