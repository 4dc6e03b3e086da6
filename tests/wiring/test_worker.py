"""The worker does the due work, also when a process dies in the meantime."""

import asyncio
from datetime import date, timedelta

import asyncpg
import pytest
from structlog.testing import capture_logs

from billfold.ledger import scheduler
from billfold.ledger.scheduler import DUE_HELP_LOCKS, DUE_WORK_LOCK
from billfold.ledger.types import ScheduledJob
from billfold.monitoring.health import failed_work
from billfold.monitoring.node_health import check_nodes, measure_nodes
from billfold.monitoring.samples import measure
from billfold.payments.clearing.rules import BANK_DAY_CLOSED_JOB
from billfold.platform import ids
from billfold.platform.clock import ClockState, wall_now
from billfold.platform.database.background_work import list_failed
from billfold.platform.database.business_clock import write_clock
from billfold.platform.database.distribution import is_distributed
from billfold.platform.dates import et_instant
from billfold.wiring import worker as worker_module
from billfold.wiring.worker import IDEMPOTENCY_KEY_RETENTION, Worker


async def set_clock(bank, at):
    async with bank.pool.acquire() as conn:
        await write_clock(conn, ClockState(at, wall_now(), frozen=True))


async def lock(conn, *locks):
    await conn.execute("SELECT pg_advisory_lock(lock) FROM unnest($1::bigint[]) AS lock", locks)


async def count(bank, table):
    return await bank.pool.fetchval(f"SELECT count(*) FROM {table}")


async def test_a_worker_executes_due_work_after_the_clock_advances(bank, new_holder):
    for _ in range(3):
        await (await new_holder()).deposit(10_000_00)
    await set_clock(bank, et_instant(date(2025, 6, 24), 9))
    # Three pockets close a day and see a bill mature; the house closes fifteen days.
    assert await Worker(bank).work_once() == 3 + 3 + 15
    assert await Worker(bank).work_once() == 15, "each of them has a root"
    assert await Worker(bank).work_once() == 0


async def test_a_worker_pauses_while_the_clock_is_advanced(bank, new_holder):
    await (await new_holder()).deposit(10_000_00)
    await set_clock(bank, et_instant(date(2025, 6, 3), 9))
    async with bank.pool.acquire() as walker:
        await lock(walker, DUE_WORK_LOCK, *DUE_HELP_LOCKS)
        assert await Worker(bank).work_once() == 0
        await walker.execute("SELECT pg_advisory_unlock_all()")
    assert await Worker(bank).work_once() == 2


async def test_other_workers_bring_customers_up_to_date_while_one_does_due_work(bank, new_holder, monkeypatch):
    monkeypatch.setattr(scheduler, "_READ_MAX", 1)
    for _ in range(4):
        await (await new_holder()).deposit(10_000_00)
    await set_clock(bank, et_instant(date(2025, 6, 3), 9))
    async with bank.pool.acquire() as leader:
        await lock(leader, DUE_WORK_LOCK, DUE_HELP_LOCKS[0])
        assert await Worker(bank).work_once() == 2, "a second helper leaves two"
        await leader.execute("SELECT pg_advisory_unlock($1)", DUE_HELP_LOCKS[0])
        assert await Worker(bank).work_once() == 1, "all customers but the one that is left to the leader"
        await leader.execute("SELECT pg_advisory_unlock_all()")
    assert await Worker(bank).work_once() == 1 + 1, "the last customer, then the day of the house"


async def test_due_work_continues_while_a_daily_root_is_computed(bank):
    begun, stop, due = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run_long(*_):
        begun.set()
        await due.wait()

    async def run(*_):
        due.set()
        stop.set()

    bank.job_runners, now = {BANK_DAY_CLOSED_JOB: run_long, "a job": run}, await bank.now()
    await scheduler.schedule(bank.pool, [ScheduledJob(BANK_DAY_CLOSED_JOB, ids.new(), None, at=now)])
    workers = [asyncio.create_task(Worker(bank, pause_seconds=0.01).run(stop)) for _ in range(2)]
    await asyncio.wait_for(begun.wait(), 10)
    await scheduler.schedule(bank.pool, [ScheduledJob("a job", ids.new(), None, at=now)])
    await asyncio.wait_for(asyncio.gather(*workers), 10)
    assert await count(bank, "scheduled_job") == 0


async def test_periodic_tasks_run_in_every_worker_round(bank):
    ran = []

    async def periodic_task(of):
        ran.append(of)
        return 0

    await Worker(bank, periodic_task).work_once()
    assert ran == [bank]


@pytest.mark.parametrize(
    "error",
    [
        OSError("the database is unavailable"),
        KeyError("a bug"),
        ExceptionGroup("both", [asyncpg.InternalClientError("ended")]),
    ],
    ids=str,
)
async def test_a_worker_continues_after_a_failed_periodic_task(bank, error):
    stop = asyncio.Event()
    rounds = []

    async def periodic_task(_):
        rounds.append(1)
        if len(rounds) > 1:
            stop.set()
        raise error

    await asyncio.wait_for(Worker(bank, periodic_task, pause_seconds=0.01).run(stop), 10)
    assert len(rounds) == 2


async def test_a_failed_job_is_deferred_and_retried_later(bank):
    runs, bad = [], ids.new()

    async def run(_, job):
        runs.append(job.object_id)
        if job.object_id == bad and len(runs) < 5:
            raise LookupError("not now")

    bank.job_runners = {"a job": run}
    now, good = await bank.now(), [ids.new() for _ in range(2)]
    await scheduler.schedule(bank.pool, [ScheduledJob("a job", each, None, at=now) for each in (bad, *good)])
    assert await Worker(bank).work_once() == 2
    assert await Worker(bank).work_once() == 0
    assert sorted(runs) == sorted([bad, *good])
    (failed,) = await list_failed(bank.pool)
    assert (failed.kind, failed.item, failed.tries) == ("scheduled job", f"a job {bad}", 1)
    assert "not now" in failed.error
    for tries in ([2], []):
        await bank.pool.execute("UPDATE failed_work SET again_at = now() - interval '1 second'")
        await Worker(bank).work_once()
        assert [each.tries for each in await list_failed(bank.pool)] == tries


async def test_jobs_of_an_unknown_kind_are_reported_and_run_by_the_release_that_knows_them(bank, monkeypatch):
    runs, now = [], await bank.now()

    async def run(_, job):
        runs.append(job.kind)

    monkeypatch.setattr(worker_module, "UNKNOWN_JOBS_SECONDS", 0)
    bank.job_runners = {"known": run}
    jobs = [ScheduledJob(kind, ids.new(), None, at=now) for kind in ("known", "newer", "newer")]
    await scheduler.schedule(bank.pool, jobs)
    worker = Worker(bank)
    with capture_logs() as logs:
        for _ in range(2):
            await worker.work_once()
    assert (runs, [each["kind"] for each in logs if each["event"] == "jobs_of_unknown_kind"]) == (["known"], ["newer"])
    async with bank.pool.acquire() as conn:
        found = await failed_work(conn)
        gauges = {each.gauge.name: each.values for each in await measure(conn, wall_now())}
        assert await is_distributed(conn) or not [*await check_nodes(conn), *await measure_nodes(conn, wall_now())]
    assert "newer" in found.detail
    assert "2 jobs are due since" in found.detail
    assert (["jobs of an unknown kind"], 1) in gauges["billfold_work_put_aside"]
    bank.job_runners = {"known": run, "newer": run}
    await worker.work_once()
    assert (runs, await list_failed(bank.pool)) == (["known", "newer", "newer"], [])


async def test_a_long_periodic_task_does_not_block_others(bank):
    stop = asyncio.Event()
    begun = asyncio.Event()

    async def long(_):
        begun.set()
        await stop.wait()
        return 0

    async def short(_):
        await begun.wait()
        stop.set()
        return 0

    await asyncio.wait_for(Worker(bank, long, short, pause_seconds=0.01).run(stop), 10)


@pytest.mark.parametrize(
    ("age", "left"),
    [(IDEMPOTENCY_KEY_RETENTION - timedelta(minutes=1), 1), (IDEMPOTENCY_KEY_RETENTION + timedelta(minutes=1), 0)],
)
async def test_idempotency_keys_are_purged_after_a_day(bank, age, left):
    claimed = wall_now() - age
    await bank.pool.execute(
        "INSERT INTO idempotency_key (caller, key, fingerprint, claimed_at, lease_until) VALUES ($1, $2, 'x', $3, $3)",
        ids.new(),
        ids.new(),
        claimed,
    )
    await Worker(bank).work_once()
    assert await count(bank, "idempotency_key") == left


async def test_expired_assertions_and_rate_limit_windows_are_purged(bank):
    wall = wall_now()
    for minutes in (-40, 10):
        at = wall + timedelta(minutes=minutes)
        await bank.pool.execute("INSERT INTO consumed_assertion VALUES ('a', $1, $2)", ids.new().bytes, at)
        await bank.pool.execute("INSERT INTO rate_limit_window VALUES ($1, 'all', $2, 1)", ids.new(), at)
    await Worker(bank).work_once()
    assert await count(bank, "consumed_assertion") == 1
    assert await count(bank, "rate_limit_window") == 1
