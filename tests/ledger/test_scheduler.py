"""Scheduled jobs run in order when they are due, and are retried after a failure."""

from datetime import timedelta

from tests.support.whole_bank import bank as bank  # noqa: PLC0414 - a fixture

from billfold.ledger import scheduler
from billfold.ledger.scheduler import next_scheduled_at, run_scheduled_jobs
from billfold.ledger.types import ScheduledJob
from billfold.platform import ids
from billfold.platform.errors import Unavailable
from billfold.sandbox.control.clock_stepper import ClockStepper


async def test_advancing_the_clock_stops_at_every_scheduled_job(bank):
    met = []

    async def meet(at_bank, appointment):
        met.append((appointment.kind, appointment.object_id, await at_bank.now()))

    bank.job_runners = {"a.meeting": meet, "b.meeting": meet}
    now = await bank.now()
    first, second, third = ids.new(), ids.new(), ids.new()
    hour = timedelta(hours=1)
    await scheduler.schedule(
        bank.pool,
        [
            ScheduledJob("b.meeting", first, None, at=now + hour),
            ScheduledJob("a.meeting", second, None, at=now + hour),
            ScheduledJob("a.meeting", third, None, at=now + 3 * hour),
            ScheduledJob("c.nobody", third, None, at=now + hour),
        ],
    )
    assert await next_scheduled_at(bank) == now + hour
    stepping = ClockStepper(bank)
    assert (await stepping.show()).next_event_at == now + hour
    face = await stepping.advance(2 * hour)
    assert met == [("a.meeting", second, now + hour), ("b.meeting", first, now + hour)]
    assert face.happened == {"a.meeting": 1, "b.meeting": 1}
    await stepping.advance(2 * hour)
    assert met[2:] == [("a.meeting", third, now + 3 * hour)]
    assert await bank.pool.fetchval("SELECT count(*) FROM scheduled_job") == 1, "nobody's stays"


async def test_a_failed_job_remains_scheduled_and_does_not_block_others(bank):
    kept = []

    async def keep(_, appointment):
        kept.append(appointment.object_id)
        if appointment.object_id == bad and len(kept) < 4:
            raise LookupError("not now")

    bank.job_runners = {"meeting": keep}
    now = await bank.now()
    bad, good, later = ids.new(), ids.new(), ids.new()
    await scheduler.schedule(
        bank.pool,
        [
            ScheduledJob("meeting", bad, None, at=now),
            ScheduledJob("meeting", good, None, at=now),
            ScheduledJob("meeting", later, None, at=now + timedelta(seconds=1)),
        ],
    )
    once = await run_scheduled_jobs(bank, now + timedelta(hours=1))
    assert set(kept) == {bad, good, later}
    assert [each.object_id for each in once.failed] == [bad]
    assert once.happened == {"meeting": 2}
    again = await run_scheduled_jobs(bank, now + timedelta(hours=1))
    assert (again.happened, again.failed) == ({"meeting": 1}, {})


async def test_a_job_scheduled_again_is_moved_and_can_be_cancelled(bank):
    async def put_off(at_bank, appointment):
        later = appointment._replace(at=appointment.at + timedelta(days=1))
        await scheduler.schedule(at_bank.pool, [later])

    bank.job_runners = {"meeting": put_off}
    now, it = await bank.now(), ids.new()
    await scheduler.schedule(bank.pool, [ScheduledJob("meeting", it, None, at=now)] * 2)
    await run_scheduled_jobs(bank, now)
    assert await next_scheduled_at(bank) == now + timedelta(days=1)
    await scheduler.cancel(bank.pool, "meeting", it)
    assert await next_scheduled_at(bank) is None


async def test_an_unavailable_job_kind_is_tried_once_per_run(bank, monkeypatch):
    met, asked = [], []

    async def ring(_, appointment):
        met.append(appointment.object_id)
        raise Unavailable("nobody answers")

    async def meet(_, appointment):
        met.append(appointment.object_id)

    async def no_node(pool):
        asked.append(pool)
        raise Unavailable("a node does not answer")

    bank.job_runners = {"call": ring, "meeting": meet}
    now, second = await bank.now(), timedelta(seconds=1)
    first, other, last = ids.new(), ids.new(), ids.new()
    appointments = [("call", first, now), ("call", other, now + second), ("meeting", last, now + 2 * second)]
    await scheduler.schedule(bank.pool, [ScheduledJob(kind, it, None, at=at) for kind, it, at in appointments])
    with monkeypatch.context() as away:
        away.setattr(scheduler, "await_prepared", no_node)
        unprepared = await run_scheduled_jobs(bank, now + timedelta(hours=1))
    assert (met, len(asked), [each.object_id for each in unprepared.failed]) == ([], 1, [first])
    once = await run_scheduled_jobs(bank, now + timedelta(hours=1))
    assert met == [first, last]
    again = await run_scheduled_jobs(bank, now + timedelta(hours=1), put_aside=[each.name for each in once.failed])
    assert met[2:] == [each.object_id for each in again.failed] == [other]
