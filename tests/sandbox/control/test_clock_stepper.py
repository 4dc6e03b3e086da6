"""The test clock: it walks from due instant to due instant, in order, and loses nothing."""

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest
from tests.support.whole_bank import EngineCommands, close_bank, expect_clean, open_bank

from billfold.ledger.scheduler import BATCHES_LOCK, DUE_WORK_LOCK, LONG_JOBS_LOCK, bank_customer_id
from billfold.platform.clock import EARLIEST, LATEST, ClockState, ClockWouldGoBack, wall_now
from billfold.platform.database.background_work import locked
from billfold.platform.database.business_clock import write_clock
from billfold.platform.dates import et_instant
from billfold.platform.errors import Refused, Unavailable
from billfold.sandbox.control import clock_stepper
from billfold.sandbox.control.clock_stepper import ClockStepper

START = datetime(2025, 6, 2, 13, tzinfo=UTC)


@pytest.fixture
def stepper(bank):
    return ClockStepper(bank)


async def test_the_idle_clock_shows_its_start_and_the_end_of_the_bank_day(stepper):
    face = await stepper.show()
    assert (face.now, face.frozen, face.business_date) == (START, True, date(2025, 6, 2))
    assert face.next_event_at == et_instant(date(2025, 6, 2), 17)


async def test_advancing_the_clock_closes_the_days_in_between(bank, stepper):
    face = await stepper.advance(timedelta(days=4))
    assert face.now == START + timedelta(days=4)
    assert face.happened == {"house-day": 4, "daily-root": 4}
    assert face.next_event_at == et_instant(date(2025, 6, 6), 17)


@pytest.mark.parametrize("lock", [DUE_WORK_LOCK, LONG_JOBS_LOCK, BATCHES_LOCK])
async def test_the_clock_does_not_move_while_a_worker_does_what_is_due(bank, stepper, monkeypatch, lock):
    monkeypatch.setattr(clock_stepper, "_LOCK_TIMEOUT_SECONDS", 0.2)
    async with locked(bank.pool, lock):
        with pytest.raises(Unavailable, match="moving already"):
            await stepper.advance(timedelta(days=1))
    assert (await stepper.advance(timedelta(days=1))).now == START + timedelta(days=1)


async def test_business_days_skip_weekends_and_holidays(stepper):
    await stepper.set_to(et_instant(date(2025, 6, 18), 9))
    face = await stepper.advance_business_days(2)
    assert face.now == et_instant(date(2025, 6, 23), 9)  # over Juneteenth and the weekend


async def test_running_to_the_next_event_executes_events_one_by_one_in_order(stepper, new_holder):
    await (await new_holder()).deposit(10_000_00)
    seen = [await stepper.advance_to_next_event() for _ in range(3)]
    assert [face.now for face in seen] == [et_instant(date(2025, 6, day), 17) for day in (2, 3, 4)]
    assert seen[0].happened == {"close": 1, "house-day": 1, "daily-root": 1}
    assert seen[1].happened == {"house-day": 1, "daily-root": 1}


async def test_customers_are_caught_up_before_the_bank_day_closes_at_the_same_instant(bank, stepper, new_holder):
    await (await new_holder()).deposit(10_000_00)
    await stepper.advance_to_next_event()
    day = date(2025, 6, 2)
    assert await bank.pool.fetchval("SELECT count(*) FROM snapshot WHERE business_date = $1", day)
    house = await bank.pool.fetchrow(
        "SELECT business_date, due_at FROM ledger_head WHERE customer_id = $1", bank_customer_id(bank.seed)
    )
    assert tuple(house) == (date(2025, 6, 3), et_instant(date(2025, 6, 3), 17))


async def test_a_refused_clock_change_leaves_the_clock_unchanged(stepper):
    await stepper.set_to(START + timedelta(hours=1))
    with pytest.raises(ClockWouldGoBack):
        await stepper.set_to(START)
    for too_far in (stepper.set_to(LATEST), stepper.advance_business_days(10**6), stepper.advance(timedelta.max)):
        with pytest.raises(Refused, match="clock-too-far"):
            await too_far
    assert (await stepper.show()).now == START + timedelta(hours=1)


@pytest.mark.parametrize(
    ("start", "end"),
    [(LATEST - timedelta(days=45), LATEST - timedelta(microseconds=1)), (EARLIEST, EARLIEST + timedelta(days=45))],
)
async def test_the_bank_serves_requests_at_every_clock_instant(database_dsn, start, end):
    bank = await open_bank(database_dsn, clock_start=start)
    commands = EngineCommands(bank)
    for weeks in (4, 13, 26, 52):
        customer = await commands.new_customer(f"A holder of {weeks} weeks")
        place = await commands.new_pocket(customer, weeks=weeks, reinvest=weeks, name="Reserve")
        await commands.receive_money(place, 250_000_00, rail="WIRE")
    face = await ClockStepper(bank).set_to(end)
    assert (face.now, face.happened["mature"]) == (end, 1)
    await expect_clean(bank)
    await close_bank(bank)


async def test_the_clock_runs_when_resumed_and_stops_when_frozen(stepper):
    face = await stepper.resume()
    assert not face.frozen
    assert (await stepper.show()).now > START
    stopped = await stepper.freeze()
    assert stopped.frozen
    assert (await stepper.show()).now == stopped.now


async def test_a_clock_advance_killed_between_two_steps_is_completed_later(bank, new_holder):
    holder = await new_holder()
    await holder.deposit(250_000_00)
    # As after a kill: the clock shows an instant whose due things were never done.
    async with bank.pool.acquire() as conn:
        await write_clock(conn, ClockState(et_instant(date(2025, 6, 24), 8, 30), wall_now(), frozen=True))
    face = await ClockStepper(bank).advance(timedelta(0))
    assert face.happened == {"close": 1, "mature": 1, "house-day": 15, "daily-root": 15}
    units = await bank.pool.fetchval(
        "SELECT sum(credits - debits) FROM account WHERE customer_id = $1 AND kind = 'lot'", holder.customer_id
    )
    assert units > 2_500


async def test_concurrent_clock_advances_run_one_after_the_other(bank, new_holder):
    for _ in range(5):
        await (await new_holder()).deposit(10_000_00)
    first, second = await asyncio.gather(
        ClockStepper(bank).advance(timedelta(days=1)), ClockStepper(bank).advance(timedelta(days=2))
    )
    assert {first.now, second.now} >= {START + timedelta(days=3)}
    closes = first.happened.get("close", 0) + second.happened.get("close", 0)
    days = first.happened["house-day"] + second.happened["house-day"]
    assert (closes, days) == (5, 3)
