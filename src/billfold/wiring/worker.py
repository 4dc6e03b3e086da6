"""The worker: does what is due, closes the house's day, carries out what waits, tidies up.

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
from billfold.ledger.jobs.scheduler import keep_appointments
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.errors import BillfoldError
from billfold.treasury.settlement.worker import close_house_days
from billfold.wiring.purge import AT_ONCE, purge, sweep_files

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 0.5
"""How long a worker rests after a round in which there was nothing to do."""
PURGE_SECONDS = 60.0
SWEEP_SECONDS = 6 * 3600.0

Errand = Callable[["Bank"], Awaitable[int]]
"""Something that may be waiting: does a few and returns how many."""


class Worker:
    """One worker of one bank. `errands` are further things that wait to be done."""

    def __init__(self, bank: Bank, *errands: Errand, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._bank = bank
        self._errands = errands
        self._pause_seconds = pause_seconds
        self._purge_at = 0.0
        self._sweep_at = monotonic() + PURGE_SECONDS

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set. A database that is away is waited for.

        Due work and every errand go round by themselves: a long file or a slow mail server holds
        up nothing else.
        """
        log.info("worker_started")
        async with asyncio.TaskGroup() as rounds:
            rounds.create_task(self._go_round(self._look_after, stop))
            for errand in self._errands:
                rounds.create_task(self._go_round(partial(errand, self._bank), stop))
        log.info("worker_stopped")

    async def work_once(self) -> int:
        """Do one round of everything; return how many things were done."""
        done = await self._look_after()
        for errand in self._errands:
            done += await errand(self._bank)
        return done

    async def _go_round(self, work: Callable[[], Awaitable[int]], stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                done = await work()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, BillfoldError) as error:
                log.warning("round_failed", error=repr(error))
                done = 0
            if not done:
                await self._rest(stop)

    async def _look_after(self) -> int:
        """Do what is due and tidy up."""
        done = await self._due_work()
        if monotonic() >= self._purge_at:
            kept_days = self._bank.settings.webhook_attempts_days
            removed = await purge(self._bank.pool, wall_now(), attempts_days=kept_days)
            if max(removed.values()) < AT_ONCE:
                self._purge_at = monotonic() + PURGE_SECONDS
            done += sum(removed.values())
        if monotonic() >= self._sweep_at:
            done += await sweep_files(self._bank.pool, self._bank.files, wall_now())
            self._sweep_at = monotonic() + SWEEP_SECONDS
        return done

    async def _due_work(self) -> int:
        """Bring the bank up to now, unless another worker or a walk of the clock is doing it."""
        async with self._bank.pool.acquire() as conn:
            if not await conn.fetchval("SELECT pg_try_advisory_lock($1)", DUE_WORK_LOCK):
                return 0
            try:
                return await self._bring_up_to_now()
            finally:
                await conn.execute("SELECT pg_advisory_unlock($1)", DUE_WORK_LOCK)

    async def _bring_up_to_now(self) -> int:
        now = await self._bank.now()
        caught = await catch_up_due(self._bank, now)
        for customer_id, error in caught.failed.items():
            log.error("customer_stays_due", customer_id=str(customer_id), error=repr(error))
        kept = await keep_appointments(self._bank, now)
        for appointment, error in kept.failed.items():
            log.error(
                "appointment_not_kept",
                appointment=appointment.kind,
                object_id=str(appointment.object_id),
                error=repr(error),
            )
        closed = await close_house_days(self._bank, now)
        happened = caught.happened + kept.happened
        done = happened.total() + closed
        if done:
            log.info("due_work_done", now=now, house_days=closed, **happened)
        return done

    async def _rest(self, stop: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(stop.wait(), self._pause_seconds)
        except TimeoutError:
            return
