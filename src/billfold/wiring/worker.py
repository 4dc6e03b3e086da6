"""The worker: does due work, closes the bank's day, runs scheduled jobs, purges old rows.

It has no state: every iteration queries the database for work, so it may be killed at any moment and any number may
run. One of them at a time does due work and closes days, helped by the others with customers, and one each runs long
jobs and batches of transfers concurrently; the others take over when it is gone. Correctness does not depend on
workers: customers are brought up to date before each of their commands anyway.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

import structlog

from billfold.backup import restore_points
from billfold.batches.types import RUN_BATCH
from billfold.data_keys.rotation import shred_after_retention
from billfold.documents import store as document_store
from billfold.documents.ports import FileStore
from billfold.events.webhooks import attempts
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import (
    BATCHES_LOCK,
    DUE_HELP_LOCKS,
    DUE_WORK,
    DUE_WORK_LOCK,
    LONG_JOBS_LOCK,
    SET_APART_TRIES,
    catch_up_due,
    count_unknown_jobs,
    run_scheduled_jobs,
)
from billfold.payments.clearing.rules import BANK_DAY_CLOSED_JOB
from billfold.payments.clearing.worker import close_bank_days
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import forget, locked, put_aside, read_put_aside
from billfold.platform.database.connection import Pool
from billfold.platform.database.shortage import error_summary
from billfold.platform.telemetry.metrics import WORKER_FAILURES
from billfold.reports import downloads
from billfold.reports.proofs.roots import store as root_store
from billfold.reports.requests.worker import purge_reports
from billfold.request_log import store as request_log_store

ROWS_PER_STATEMENT = 5_000
"""Maximum number of rows of one table removed by one statement."""
IDEMPOTENCY_KEY_RETENTION = timedelta(hours=24)
"""Retention of idempotency keys, in wall time."""
ORPHAN_FILE_RETENTION = timedelta(days=7)
"""Retention of files that no document names: an upload that was cut off, or was replaced."""
RATE_WINDOW_RETENTION = timedelta(minutes=30)
"""Retention of counters; those of failed logins are read for a quarter of an hour."""

ASSERTION_RETENTION = timedelta(minutes=1)
"""Retention of a used assertion after its expiry: longer than the skew it is granted."""
USED_CODE_RETENTION = timedelta(days=1)
"""Retention of a code after its expiry: a second use revokes what was issued from it."""
LOGIN_ATTEMPT_RETENTION = timedelta(days=1)
DEVICE_RETENTION = timedelta(days=180)
EMAIL_RETENTION = timedelta(days=30)
"""Retention of e-mails, and after its end of what they led to."""
LINKING_EXCHANGE_RETENTION = timedelta(days=1)
"""Retention of a link whose accounts were not added: longer than a request is repeated."""
_NONE = timedelta(0)

_EXPIRED_ROWS = {
    "idempotency_key": ("caller, key", "claimed_at", IDEMPOTENCY_KEY_RETENTION),
    "rate_limit_window": ("caller, kind, starts_at", "starts_at", RATE_WINDOW_RETENTION),
    "partner_token": ("token_hash", "expires_at", _NONE),
    "consumed_assertion": ("issuer, jti_hash", "expires_at", ASSERTION_RETENTION),
    "consumed_dpop_proof": ("jkt, jti_hash", "expires_at", _NONE),
    "access_token": ("token_hash", "expires_at", _NONE),
    "refresh_token": ("token_hash", "expires_at", _NONE),
    "authorization_code": ("code_hash", "expires_at", USED_CODE_RETENTION),
    "oauth_authorization_request": ("request_id", "expires_at", USED_CODE_RETENTION),
    "signing_key": ("key_id", "retires_at", _NONE),
    "client_key": ("client_id, key_id", "expires_at", USED_CODE_RETENTION),
    "session": ("session_hash", "ends_at", _NONE),
    "passkey_challenge": ("challenge", "expires_at", _NONE),
    "login_attempt": ("subject, factor", "last_failed_at", LOGIN_ATTEMPT_RETENTION),
    "known_device": ("user_id, device_hash", "last_seen_at", DEVICE_RETENTION),
    "email_link": ("link_hash", "expires_at", EMAIL_RETENTION),
    "earlier_link": ("link_hash", "expires_at", _NONE),
    "invitation": ("member_id", "link_expires_at", EMAIL_RETENTION),
    "invite_session": ("session_hash", "ends_at", _NONE),
    "usage_count": ("subject, kind", "expires_at", _NONE),
    "outbound_email": ("email_id", "created_at", EMAIL_RETENTION),
    "linking_exchange": ("customer_id, exchange_id", "exchanged_at", LINKING_EXCHANGE_RETENTION),
    "failed_work": ("kind, item", "failed_at", EMAIL_RETENTION),
}
"""Table -> its key, the column of an instant, and how long after that instant a row is kept."""
_PURGE = "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {column} < $1 LIMIT $2)"


async def purge(pool: Pool, wall: datetime, *, attempts_days: int, requests_days: int) -> dict[str, int]:
    """Remove all expired rows, `ROWS_PER_STATEMENT` at a time; return how many of each table.

    A failing table does not stop the others.
    """
    removed: dict[str, int] = {}
    failed: dict[str, Exception] = {}
    aside = await read_put_aside(pool, "purge", wall)
    for table, (key, column, retention) in _EXPIRED_ROWS.items():
        statement = _PURGE.format(table=table, key=key, column=column)
        try:
            removed[table] = await _purge_table(pool, statement, wall - retention)
        except Exception as error:  # noqa: BLE001 - recorded
            failed[table] = error
    removed["delivery_attempt"] = await attempts.purge_attempts(
        pool, wall - timedelta(days=attempts_days), limit=ROWS_PER_STATEMENT
    )
    removed["request_log"] = await request_log_store.purge_requests(
        pool, wall - timedelta(days=requests_days), limit=ROWS_PER_STATEMENT
    )
    await aside.record(pool, failed, wall)
    return removed


async def purge_daily_proofs(pool: Pool, now: datetime, *, days: int) -> int:
    """Remove the pages of daily roots that are older, in business time; return how many."""
    return await root_store.purge_pages(pool, now, timedelta(days=days), limit=ROWS_PER_STATEMENT)


async def _purge_table(pool: Pool, statement: str, before: datetime) -> int:
    removed = 0
    while True:
        answer = await pool.execute(statement, before, ROWS_PER_STATEMENT)
        last = int(answer.split()[-1])
        removed += last
        if last < ROWS_PER_STATEMENT:
            return removed


async def delete_orphan_files(pool: Pool, files: FileStore, wall: datetime) -> int:
    """Discard files that neither a document nor a report names, once they are old; return how many.

    A file is stored before its document's row, so a young one may still get its row.
    """
    old = await files.list_stored(wall - ORPHAN_FILE_RETENTION)
    orphans = []
    for start in range(0, len(old), ROWS_PER_STATEMENT):
        of_no_document = await document_store.find_orphaned_files(pool, old[start : start + ROWS_PER_STATEMENT])
        orphans += await downloads.find_orphaned_parts(pool, of_no_document)
    for key in orphans:
        await files.discard(key)
    return len(orphans)


log = structlog.get_logger(__name__)

IDLE_SECONDS = 0.5
"""Pause of a worker after an iteration without work."""
PAUSE_MAX_SECONDS = 30.0
_DOUBLINGS_MAX = 10
PURGE_SECONDS = 60.0
UNKNOWN_JOBS_SECONDS = 60.0
ORPHAN_FILES_SECONDS = 6 * 3600.0
SHRED_SECONDS = 600.0
LONG_JOBS = frozenset({BANK_DAY_CLOSED_JOB})
"""Kinds of jobs that due work does not wait for."""
_BATCHES = frozenset({RUN_BATCH})

PeriodicTask = Callable[["Bank"], Awaitable[int]]
"""Work that may be pending: does some of it and returns how many items."""


class Worker:
    """One worker of one bank. `periodic_tasks` run concurrently with due work."""

    def __init__(self, bank: Bank, *periodic_tasks: PeriodicTask, pause_seconds: float = IDLE_SECONDS) -> None:
        self._bank = bank
        tasks = (
            do_long_jobs,
            do_batches,
            do_due_work,
            _PeriodicTask(UNKNOWN_JOBS_SECONDS, report_unknown_jobs),
            _PeriodicTask(PURGE_SECONDS, purge_expired),
            _PeriodicTask(PURGE_SECONDS, purge_reports),
            _PeriodicTask(ORPHAN_FILES_SECONDS, purge_files),
            _PeriodicTask(SHRED_SECONDS, shred_after_retention),
            _PeriodicTask(restore_points.SECONDS, restore_points.make_restore_point),
        )
        self._tasks: Sequence[PeriodicTask] = (*tasks, *periodic_tasks)
        self._idle_seconds = pause_seconds

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set. Waits while the database is unavailable.

        Due work and every periodic task have their own loop: a long file or a slow mail server
        delays nothing else, and a failing one stops no other.
        """
        log.info("worker_started")
        async with AsyncExitStack() as stack:
            for task in self._tasks:
                if hasattr(task, "aclose"):
                    stack.push_async_callback(task.aclose)
            await asyncio.gather(*(self._run_loop(task, stop) for task in self._tasks))
        log.info("worker_stopped")

    async def work_once(self) -> int:
        """Run one iteration of everything; return how many items were done."""
        return sum([await task(self._bank) for task in self._tasks])

    async def _run_loop(self, task: PeriodicTask, stop: asyncio.Event) -> None:
        failures = 0
        while not stop.is_set():
            try:
                work_done, failures = await task(self._bank), 0
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round may be better
                work_done, failures = 0, failures + 1
                WORKER_FAILURES.add(_name_of(task))
                log.warning("worker_iteration_failed", task=_name_of(task), error=error_summary(error))
            if not work_done:
                await self._pause(stop, min(self._idle_seconds * 2 ** min(failures, _DOUBLINGS_MAX), PAUSE_MAX_SECONDS))

    async def _pause(self, stop: asyncio.Event, seconds: float) -> None:
        try:
            await asyncio.wait_for(stop.wait(), seconds)
        except TimeoutError:
            return


class _PeriodicTask:
    """A task that is done periodically."""

    def __init__(self, seconds: float, task: PeriodicTask) -> None:
        self._seconds = seconds
        self.task = task
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """Run it if it is due."""
        if monotonic() < self._next_at:
            return 0
        work_done = await self.task(bank)
        self._next_at = monotonic() + self._seconds
        return work_done


async def purge_expired(bank: Bank) -> int:
    """Remove expired rows; return how many."""
    settings = bank.settings
    removed = await purge(
        bank.pool, wall_now(), attempts_days=settings.webhook_attempts_days, requests_days=settings.request_log_days
    )
    proofs = await purge_daily_proofs(bank.pool, await bank.now(), days=settings.daily_proofs_days)
    return sum(removed.values()) + proofs


async def purge_files(bank: Bank) -> int:
    """Remove files that no document names; return how many."""
    return await delete_orphan_files(bank.pool, bank.ports[FileStore], wall_now())


async def do_due_work(bank: Bank) -> int:
    """Bring the bank up to now, or help another worker that is doing it; nothing during a walk of the clock."""
    for ahead, lock in enumerate((DUE_WORK_LOCK, *DUE_HELP_LOCKS)):
        async with locked(bank.pool, lock) as conn:
            if conn is not None:
                return await (_help(bank, ahead) if ahead else _catch_up_all(bank))
    return 0


async def do_long_jobs(bank: Bank) -> int:
    """Run jobs that may take minutes, unless another worker is doing it. Due work continues in the meantime."""
    return await _run_alone(bank, LONG_JOBS_LOCK, "long job", kinds=LONG_JOBS)


async def do_batches(bank: Bank) -> int:
    """Run parts of batches of transfers, unless another worker is doing it. Due work continues in the meantime."""
    return await _run_alone(bank, BATCHES_LOCK, "batch job", kinds=_BATCHES)


async def _run_alone(bank: Bank, lock: int, aside_as: str, *, kinds: Collection[str]) -> int:
    async with locked(bank.pool, lock) as conn:
        jobs = Counter[str]() if conn is None else await _run_jobs(bank, aside_as, bank.job_runners.keys() & kinds)
    return _log_completed_work(await bank.now(), jobs)


async def _help(bank: Bank, ahead: int) -> int:
    """Bring customers up to date; a failure is found again, and recorded, by the worker that is helped."""
    waiting = (await read_put_aside(bank.pool, DUE_WORK, wall_now())).waiting
    return (await catch_up_due(bank, await bank.now(), put_aside=waiting, ahead=ahead)).happened.total()


async def _catch_up_all(bank: Bank) -> int:
    now, wall = await bank.now(), wall_now()
    customers_aside = await read_put_aside(bank.pool, DUE_WORK, wall)
    due_customers = await catch_up_due(bank, now, put_aside=customers_aside.waiting)
    failed = {str(customer_id): error for customer_id, error in due_customers.failed.items()}
    await customers_aside.record(bank.pool, failed, wall)
    for customer_id, error in failed.items():
        is_apart = customers_aside.due.get(customer_id, 0) + 1 >= SET_APART_TRIES
        log.error("due_work_failed", error=error_summary(error), customer_id=customer_id, set_apart=is_apart)
    jobs = await _run_jobs(bank, "scheduled job", bank.job_runners.keys() - LONG_JOBS - _BATCHES)
    closed = await close_bank_days(bank, now)
    return _log_completed_work(now, due_customers.happened + jobs, bank_days=closed)


async def _run_jobs(bank: Bank, aside_as: str, kinds: Collection[str]) -> Counter[str]:
    """Run due jobs of some kinds; failing ones are recorded for a retry."""
    now, wall = await bank.now(), wall_now()
    aside = await read_put_aside(bank.pool, aside_as, wall)
    jobs = await run_scheduled_jobs(bank, now, kinds=kinds, put_aside=aside.waiting)
    failed = {job.name: error for job, error in jobs.failed.items()}
    await aside.record(bank.pool, failed, wall)
    for name, error in failed.items():
        log.error("scheduled_job_failed", error=error_summary(error), job=name)
    return jobs.happened


_UNKNOWN_JOBS = "jobs of an unknown kind"


async def report_unknown_jobs(bank: Bank) -> int:
    """Record due jobs of kinds that only a newer release knows, as after a rollback: they wait for it."""
    unknown, wall = await count_unknown_jobs(bank, await bank.now()), wall_now()
    known = await read_put_aside(bank.pool, _UNKNOWN_JOBS, wall)
    recorded = known.waiting | known.due.keys()
    await forget(bank.pool, _UNKNOWN_JOBS, list(recorded - unknown.keys()))
    for kind, found in unknown.items():
        if kind not in recorded:
            log.error("jobs_of_unknown_kind", kind=kind, found=found)
        error = LookupError(f"{found}: they wait for the release that knows them")
        await put_aside(bank.pool, _UNKNOWN_JOBS, kind, error, now=wall, tries=1)
    return 0


def _log_completed_work(now: datetime, happened: Counter[str], *, bank_days: int = 0) -> int:
    if work_done := happened.total() + bank_days:
        log.info("due_work_completed", now=now, bank_days=bank_days, **happened)
    return work_done


def _name_of(task: PeriodicTask) -> str:
    named = getattr(task, "task", task)
    return getattr(named, "__name__", type(named).__name__)
