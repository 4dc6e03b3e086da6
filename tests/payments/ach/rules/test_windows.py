"""Windows in which entries leave and settle: through nights, weekends, holidays and clock changes."""

from datetime import date, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.payments.ach.rules.windows import (
    NEXT_DAY,
    SAME_DAY,
    next_deadline,
    same_day_descriptive_date,
    schedule,
)
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date, et_instant

CALENDARS = Calendars()
NOON = time(12)
SMALL, LARGE = 24_999_99, 25_000_00


def et_time(text: str):
    day, clock = text.split()
    hour, minute = clock.split(":")
    return et_instant(date.fromisoformat(day), int(hour), int(minute))


# 2025-06-19 is a holiday of the Reserve and the market, 2025-10-13 of both; on Good Friday,
# 2025-04-18, only the market is closed.
@pytest.mark.parametrize(
    ("now", "amount", "due", "settles"),
    [
        ("2025-06-03 09:00", SMALL, "2025-06-03 10:30", "2025-06-03 13:00"),
        ("2025-06-03 10:30", SMALL, "2025-06-03 14:45", "2025-06-03 17:00"),
        ("2025-06-03 11:59", SMALL, "2025-06-03 14:45", "2025-06-03 17:00"),
        ("2025-06-03 12:00", SMALL, "2025-06-04 10:30", "2025-06-04 13:00"),
        ("2025-06-03 09:00", LARGE, "2025-06-04 02:15", "2025-06-04 08:30"),
        ("2025-06-03 12:00", LARGE, "2025-06-05 02:15", "2025-06-05 08:30"),
        ("2025-06-06 13:00", SMALL, "2025-06-09 10:30", "2025-06-09 13:00"),
        ("2025-06-07 09:00", SMALL, "2025-06-09 10:30", "2025-06-09 13:00"),
        ("2025-06-18 09:00", LARGE, "2025-06-20 02:15", "2025-06-20 08:30"),
        ("2025-06-19 09:00", SMALL, "2025-06-20 10:30", "2025-06-20 13:00"),
    ],
)
def test_a_debit_is_sent_on_the_day_of_its_acceptance(now, amount, due, settles):
    way = schedule(et_time(now), amount, CALENDARS, is_credit=False, cutoff=NOON)
    assert (way.due_at, way.settles_at) == (et_time(due), et_time(settles))


def test_a_later_cutoff_sends_afternoon_entries_the_same_day():
    for amount, due in ((SMALL, "2025-06-03 16:45"), (LARGE, "2025-06-04 02:15")):
        way = schedule(et_time("2025-06-03 16:44"), amount, CALENDARS, is_credit=False, cutoff=time(16, 45))
        assert way.due_at == et_time(due)


@pytest.mark.parametrize(
    ("now", "amount", "settles", "settled"),
    [
        ("2025-06-03 09:00", SMALL, "2025-06-04 13:00", "2025-06-06 08:30"),
        ("2025-06-03 09:00", LARGE, "2025-06-05 08:30", "2025-06-06 08:30"),
        ("2025-06-06 09:00", SMALL, "2025-06-09 13:00", "2025-06-11 08:30"),
        ("2025-06-18 09:00", SMALL, "2025-06-20 13:00", "2025-06-24 08:30"),
        ("2025-04-17 09:00", SMALL, "2025-04-21 13:00", "2025-04-23 08:30"),
    ],
)
def test_an_ach_credit_is_sent_when_its_funding_bill_sales_have_settled(now, amount, settles, settled):
    way = schedule(et_time(now), amount, CALENDARS, is_credit=True, cutoff=NOON)
    assert (way.settles_at, way.settled_at) == (et_time(settles), et_time(settled))


@given(
    minutes=st.integers(0, 3 * 365 * 24 * 60),
    amount=st.integers(1, 1_000_000_00),
    is_credit=st.booleans(),
    cutoff=st.times(time(0, 1), time(16, 45)),
)
def test_an_entry_is_transmitted_after_its_request_and_before_settlement(minutes, amount, is_credit, cutoff):
    now = et_time("2024-12-30 00:00") + timedelta(minutes=minutes)

    way = schedule(now, amount, CALENDARS, is_credit=is_credit, cutoff=cutoff)

    assert now < way.due_at < way.settles_at
    assert way.settles_at <= way.settled_at
    assert CALENDARS.is_fed_day(way.effective_on)
    assert et_date(way.settles_at) == way.effective_on
    same_day = {et_instant(way.effective_on, window.deadline) for window in SAME_DAY}
    assert (way.due_at in same_day) == (amount < LARGE)


def test_the_next_ach_deadline_is_the_first_in_the_future(calendars):
    friday, monday = date(2025, 6, 6), date(2025, 6, 9)
    *_, last = (et_instant(friday, window.deadline) for window in SAME_DAY)

    assert next_deadline(last - timedelta(microseconds=1), calendars) == last
    for over in (last, last + timedelta(hours=1), et_instant(friday + timedelta(days=1), 9)):
        assert next_deadline(over, calendars) == et_instant(monday, NEXT_DAY.deadline)


@pytest.mark.parametrize(
    ("due", "effective_on", "told"),
    [
        ("2025-06-03 10:30", date(2025, 6, 3), "SD1300"),
        ("2025-06-03 14:45", date(2025, 6, 3), "SD1700"),
        ("2025-06-03 02:15", date(2025, 6, 3), ""),
        ("2025-06-03 10:30", date(2025, 6, 4), ""),
        ("2025-06-03 10:30", None, ""),
        (None, date(2025, 6, 3), ""),
    ],
)
def test_only_an_entry_of_a_same_day_window_is_marked(due, effective_on, told):
    assert same_day_descriptive_date(due and et_time(due), effective_on) == told
