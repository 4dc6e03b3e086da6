"""Carries out batches: each by itself in parts, so that others come in between, or all rows in one command.

A row that has a result is never run again. One that was interrupted before its result was recorded runs again, and
its commands answer as the first time.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from billfold.approvals import authorization_requests
from billfold.approvals.store.approval_rules import update
from billfold.approvals.store.requests import expire
from billfold.audit.record import audited
from billfold.batches import carry_out, new_objects, partners, store
from billfold.batches.commands import ReportBatch
from billfold.batches.store import BATCHES, PARTNER_BATCHES
from billfold.batches.types import ROWS_MAX, ROWS_PER_PART, RUN_BATCH, Batch, BatchRow, RowResult
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.platform.errors import InvariantError

_REPORTER: Final = "batch-report"
_PAUSES: Final = (0.1, 0.4, 1.5)
"""Seconds until rows that another batch has paid are looked up again."""


async def run_batch(bank: Bank, job: ScheduledJob) -> None:
    """Carry out the next rows of an approved batch, and schedule the rest. Running it twice has no further effect."""
    batch = await _find(bank, job)
    if batch.status != "APPROVED" or not bank.settings.execute_transfers:
        return
    if batch.finished_at is None and await _run_part(bank, batch):
        now = await bank.now()
        # At another instant than this one, with which it is completed: the clock of a sandbox may stand still.
        at = now if now != job.at else now - timedelta(microseconds=1)
        await scheduler.schedule(bank.pool, [ScheduledJob(RUN_BATCH, batch.request_id, batch.customer_id, at=at)])
        return
    batch = await _find(bank, job)
    report = ReportBatch(
        caller=_REPORTER,
        key=batch.request_id,
        customers=(batch.customer_id,),
        completed=batch.completed,
        failed=batch.failed,
        refused=batch.refused is not None,
    )
    await bank.engine.submit(report)


async def _find(bank: Bank, job: ScheduledJob) -> Batch:
    assert job.customer_id is not None
    key, now = (job.customer_id, job.object_id), await bank.now()
    found = await BATCHES.find(bank.pool, *key, now=now) or await PARTNER_BATCHES.find(bank.pool, *key, now=now)
    if found is None:  # then its job stays, in case it can be read later
        raise InvariantError("the batch of a job is not there")
    return found


async def _run_part(bank: Bank, batch: Batch) -> bool:
    """Carry out the next rows and record their results; return whether rows are left."""
    rows_of: Any = carry_out if batch.partner_id is None else partners
    if batch.kind != "TRANSFERS":
        rows_of = new_objects
    limit = ROWS_MAX if batch.mode == "ATOMIC" else ROWS_PER_PART
    rows = await store.list_waiting(bank.pool, batch.customer_id, batch.request_id, limit=limit)
    refused = None
    if batch.mode == "ATOMIC":
        results, refused = await _carry_out_all(rows_of, bank, batch, rows) if rows else ([], None)
    else:
        results = await rows_of.carry_out_each(bank, batch, rows)
    is_last = len(rows) < limit or batch.mode == "ATOMIC"
    async with audited(
        bank,
        batch.customer_id,
        Origin.system(),
        "batch.finished",
        resource_id=batch.request_id,
        details={"refused": refused},
    ) as audited_action:
        await store.record_results(audited_action.conn, batch, results)
        if not is_last:
            audited_action.skip()
            return True
        key, where = (batch.customer_id, batch.request_id), "finished_at IS NULL"
        now = await bank.now(audited_action.conn)
        if not await update(
            audited_action, "batch", *key, where=where, finished_at=now, updated_at=now, refused=refused
        ):
            audited_action.skip()
    return False


async def _carry_out_all(
    rows_of: Any,  # noqa: ANN401 - a module of rows
    bank: Bank,
    batch: Batch,
    rows: Sequence[BatchRow],
) -> tuple[list[RowResult], str | None]:
    """Carry out all rows in one command, or none; return their results, and the code if they were refused."""
    found: tuple[list[RowResult], str | None]
    # A batch with the same keys may be first: its transfers are found when they are recorded. One server then names
    # another constraint than that of ids, which a cluster meets first.
    for pause in (*_PAUSES, None):
        try:
            found = await rows_of.carry_out_all(bank, batch, rows)
        except InvariantError:
            if pause is None:
                raise
        else:
            if pause is None or not any(each.problem and each.problem.code == "duplicate-id" for each in found[0]):
                break
        await asyncio.sleep(pause)
    return found


async def run_closed_job(bank: Bank, job: ScheduledJob) -> None:
    """End everything that a customer left open when it was closed, batches too."""
    await authorization_requests.cancel_pending(BATCHES, bank, job.object_id, await bank.now())
    await authorization_requests.run_closed_job(bank, job)


async def expire_batch(bank: Bank, job: ScheduledJob) -> None:
    """Record that a batch has expired; a decided one is not changed."""
    await expire(BATCHES, bank, job)
