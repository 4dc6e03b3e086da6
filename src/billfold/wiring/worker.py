"""The worker: does due work, closes the bank's day, runs scheduled jobs, purges old rows.

It owns nothing: every round asks the database what there is to do, so it may be killed at any
moment and any number may run. One of them at a time does due work; the others take over when
it is gone. Nothing waits for a worker to be right: customers are brought up to date before
each of their commands anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import asyncpg
import structlog

from billfold.ledger.jobs.due_work import DUE_WORK_LOCK, catch_up_due
from billfold.ledger.jobs.scheduler import run_scheduled_jobs
from billfold.payments.settlement.worker import close_bank_days
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.errors import BillfoldError
from billfold.wiring.purge import ROWS_PER_STATEMENT, delete_orphan_files, purge

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

log = structlog.get_logger(__name__)

IDLE_SECONDS = 0.5
"""How long a worker rests after a round in which there was nothing to do."""
PURGE_SECONDS = 60.0
ORPHAN_FILES_SECONDS = 6 * 3600.0

PeriodicTask = Callable[["Bank"], Awaitable[int]]
"""Something that may be waiting: does a few and returns how many."""


class Worker:
    """One worker of one bank. `periodic_tasks` run beside due work."""

    def __init__(self, bank: Bank, *periodic_tasks: PeriodicTask, pause_seconds: float = IDLE_SECONDS) -> None:
        self._bank = bank
        self._periodic_tasks = periodic_tasks
        self._idle_seconds = pause_seconds
        self._purge_at = 0.0
        self._orphan_files_at = monotonic() + PURGE_SECONDS

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set. A database that is away is waited for.

        Due work and every periodic task have their own loop: a long file or a slow mail server
        delays nothing else.
        """
        log.info("worker_started")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run_loop(self._maintain, stop))
            for periodic_task in self._periodic_tasks:
                tasks.create_task(self._run_loop(partial(periodic_task, self._bank), stop))
        log.info("worker_stopped")

    async def work_once(self) -> int:
        """Do one round of everything; return how many things were done."""
        work_done = await self._maintain()
        for periodic_task in self._periodic_tasks:
            work_done += await periodic_task(self._bank)
        return work_done

    async def _run_loop(self, work: Callable[[], Awaitable[int]], stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                work_done = await work()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, BillfoldError) as error:
                log.warning("worker_iteration_failed", error=repr(error))
                work_done = 0
            if not work_done:
                await self._pause(stop)

    async def _maintain(self) -> int:
        """Do what is due and tidy up."""
        work_done = await self._due_work()
        if monotonic() >= self._purge_at:
            retention_days = self._bank.settings.webhook_attempts_days
            removed = await purge(self._bank.pool, wall_now(), attempts_days=retention_days)
            if max(removed.values()) < ROWS_PER_STATEMENT:
                self._purge_at = monotonic() + PURGE_SECONDS
            work_done += sum(removed.values())
        if monotonic() >= self._orphan_files_at:
            work_done += await delete_orphan_files(self._bank.pool, self._bank.files, wall_now())
            self._orphan_files_at = monotonic() + ORPHAN_FILES_SECONDS
        return work_done

    async def _due_work(self) -> int:
        """Bring the bank up to now, unless another worker or a walk of the clock is doing it."""
        async with self._bank.pool.acquire() as conn:
            if not await conn.fetchval("SELECT pg_try_advisory_lock($1)", DUE_WORK_LOCK):
                return 0
            try:
                return await self._catch_up_all()
            finally:
                await conn.execute("SELECT pg_advisory_unlock($1)", DUE_WORK_LOCK)

    async def _catch_up_all(self) -> int:
        now = await self._bank.now()
        due_customers = await catch_up_due(self._bank, now)
        for customer_id, error in due_customers.failed.items():
            log.error("due_work_failed", customer_id=str(customer_id), error=repr(error))
        kept = await run_scheduled_jobs(self._bank, now)
        for job, error in kept.failed.items():
            log.error("scheduled_job_failed", kind=job.kind, object_id=str(job.object_id), error=repr(error))
        closed = await close_bank_days(self._bank, now)
        happened = due_customers.happened + kept.happened
        work_done = happened.total() + closed
        if work_done:
            log.info("due_work_completed", now=now, bank_days=closed, **happened)
        return work_done

    async def _pause(self, stop: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(stop.wait(), self._idle_seconds)
        except TimeoutError:
            return
