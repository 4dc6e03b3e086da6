import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.bills import market_data
from billfold.platform import clock
from billfold.platform.clock import ClockState, ClockTooFar, ClockWouldGoBack
from billfold.platform.database import business_clock
from billfold.platform.dates import et_instant

_WALL = datetime(2026, 3, 1, 12, tzinfo=UTC)
_START = datetime(2025, 6, 2, 13, tzinfo=UTC)
_STATE = ClockState(_START, _WALL)
_HOUR = timedelta(hours=1)
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["wait", "set", "advance", "freeze", "resume"]),
        st.timedeltas(timedelta(0), timedelta(days=400)),
    ),
    max_size=20,
)


def test_a_running_clock_follows_the_wall_clock_from_its_anchor():
    for wall, shown in ((_WALL, _START), (_WALL + _HOUR, _START + _HOUR), (_WALL - _HOUR, _START)):
        assert _STATE.at(wall) == clock.business_now(_STATE, wall) == shown
        assert clock.business_now(None, wall) == wall


def test_a_frozen_clock_does_not_advance_until_resumed():
    frozen = _STATE.freeze(_WALL + _HOUR)
    resumed = frozen.resume(_WALL + 3 * _HOUR)

    assert frozen.at(_WALL + 2 * _HOUR) == _START + _HOUR
    assert resumed.at(_WALL + 3 * _HOUR) == _START + _HOUR
    assert resumed.at(_WALL + 4 * _HOUR) == _START + 2 * _HOUR


def test_setting_and_advancing_keep_a_clock_frozen_or_running():
    frozen = _STATE.freeze(_WALL)

    assert frozen.advance(_HOUR, _WALL).at(_WALL + _HOUR) == _START + _HOUR
    assert frozen.set(_START + _HOUR, _WALL).frozen
    assert _STATE.advance(_HOUR, _WALL).at(_WALL + _HOUR) == _START + 2 * _HOUR
    assert not _STATE.set(_START + _HOUR, _WALL).frozen


@given(_STEPS)
def test_bank_time_never_decreases(steps):
    state, wall, shown = _STATE, _WALL, _START
    for verb, by in steps:
        if verb == "wait":
            wall += by
        elif verb == "set":
            state = state.set(state.at(wall) + by, wall)
        elif verb == "advance":
            state = state.advance(by, wall)
        else:
            state = getattr(state, verb)(wall)
        now = state.at(wall)
        assert now >= shown
        shown = now


@given(st.timedeltas(timedelta(days=-900_000), timedelta(microseconds=-1)))
def test_setting_the_clock_back_is_refused(by):
    with pytest.raises(ClockWouldGoBack) as refused:
        _STATE.advance(by, _WALL)

    assert refused.value.code == "clock-would-go-back"
    assert refused.value.facts["now"] == _START
    if by > timedelta(days=-700_000):
        with pytest.raises(ClockWouldGoBack):
            _STATE.set(_START + by, _WALL)


@given(st.timedeltas(timedelta(days=30_000), timedelta.max))
def test_setting_the_clock_beyond_the_calendars_is_refused(by):
    for move in (lambda: _STATE.advance(by, _WALL), lambda: _STATE.set(clock.LATEST, _WALL)):
        with pytest.raises(ClockTooFar):
            move()


def test_a_running_clock_stops_at_the_latest_supported_instant():
    last = clock.LATEST - timedelta(microseconds=1)
    running = _STATE.set(last, _WALL)
    assert running.at(_WALL + _HOUR) == last
    assert et_instant(market_data.rates()[0].day, 8) == clock.EARLIEST


def test_the_clock_refuses_naive_instants():
    with pytest.raises(ValueError, match="time zone"):
        ClockState(datetime(2025, 6, 2), _WALL)
    with pytest.raises(ValueError, match="time zone"):
        _STATE.set(datetime(2026, 6, 2), _WALL)


def test_only_the_clock_module_reads_the_wall_clock():
    root = Path(clock.__file__).parents[1]
    banned = ("datetime.now(", "date.today(", "time.time(", "utcnow(")

    readers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(word in path.read_text() for word in banned)
    }

    assert readers == {"platform/clock.py"}


async def test_a_stored_clock_is_read_back_equal(conn):
    frozen = _STATE.advance(_HOUR, _WALL).freeze(_WALL)
    assert await business_clock.read_clock(conn) is None
    for state in (_STATE, frozen):
        await business_clock.write_clock(conn, state)
        assert await business_clock.read_clock(conn) == state


async def test_the_later_of_two_concurrent_clock_settings_wins(conn):
    await business_clock.write_clock(conn, _STATE.advance(2 * _HOUR, _WALL))

    with pytest.raises(ClockWouldGoBack):
        await business_clock.write_clock(conn, _STATE.advance(_HOUR, _WALL))

    stored = await business_clock.read_clock(conn)
    assert stored is not None
    assert stored.business_anchor == _START + 2 * _HOUR


async def test_setting_the_clock_waits_for_running_batches(conn, database_dsn):
    await business_clock.write_clock(conn, _STATE)
    later = _STATE.advance(_HOUR, _WALL)
    other = await asyncpg.connect(database_dsn)
    try:
        async with conn.transaction():
            assert await business_clock.read_clock(conn, hold=True) == _STATE
            setting = asyncio.create_task(business_clock.write_clock(other, later))
            done, _ = await asyncio.wait([setting], timeout=0.2)
            assert not done
            assert await business_clock.read_clock(conn, hold=True) == _STATE
        await setting
    finally:
        await other.close()

    assert await business_clock.read_clock(conn) == later
