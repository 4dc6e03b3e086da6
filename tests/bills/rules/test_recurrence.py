"""Rules of recurrence: month ends, closed days, ends, and rules that would keep a worker busy."""

from datetime import date
from itertools import islice
from time import process_time

import pytest

from billfold.bills.rules.recurrence import OnClosedDay, parse_recurrence
from billfold.platform.calendars import Calendars
from billfold.platform.errors import InvalidInput

CALENDARS = Calendars()


def days(text, start, *, closed=OnClosedDay.AFTER, first=20):
    return list(islice(parse_recurrence(text, start).occurrences(CALENDARS, closed), first))


def test_the_31st_is_skipped_in_short_months_and_the_last_day_is_in_each():
    start = date(2025, 1, 31)
    assert [each.day.month for each in days("FREQ=MONTHLY;COUNT=4", start)] == [1, 3, 5, 7]
    assert [each.day.day for each in days("FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=4", start)] == [31, 28, 31, 30]


@pytest.mark.parametrize(
    ("closed", "moved_to"),
    [
        (OnClosedDay.BEFORE, date(2025, 7, 3)),
        (OnClosedDay.AFTER, date(2025, 7, 7)),
        (OnClosedDay.SKIP, None),
    ],
)
def test_a_run_on_a_holiday_is_moved_or_left_out_and_counts(closed, moved_to):
    found = days("FREQ=DAILY;COUNT=2", date(2025, 7, 3), closed=closed)
    assert found == [(date(2025, 7, 3), date(2025, 7, 3)), (date(2025, 7, 4), moved_to)]


def test_a_rule_ends_with_its_last_day_or_with_the_last_day_of_input():
    assert len(days("FREQ=WEEKLY;BYDAY=MO,TH;UNTIL=20250612", date(2025, 6, 2))) == 4
    every_day = parse_recurrence("FREQ=DAILY", date(2025, 6, 2))
    assert len(list(islice(every_day.occurrences(CALENDARS, OnClosedDay.SKIP), 1000))) == 1000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "FREQ=SECONDLY",
        "FREQ=HOURLY;BYHOUR=1",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=1000",
        "FREQ=DAILY;BYMONTH=2",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;COUNT=5;UNTIL=20260101",
        "FREQ=DAILY;UNTIL=20260101T000000Z",
        "FREQ=DAILY;UNTIL=20261301",
        "FREQ=DAILY;UNTIL=20250101",
        "FREQ=DAILY\nEXDATE:20250602",
        "FREQ=DAILY\nRRULE:FREQ=SECONDLY",
        "RRULE:FREQ=DAILY",
        "FREQ=WEEKLY;BYDAY=XX",
        "FREQ=WEEKLY;BYDAY=1MO",
        "FREQ=MONTHLY;BYDAY=+0MO",
        "FREQ=MONTHLY;BYMONTHDAY=0",
        "FREQ=MONTHLY;BYMONTHDAY=32",
        "FREQ=MONTHLY;BYMONTHDAY=99999999999999999999",
        "FREQ=MONTHLY;BYMONTH=13",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYSETPOS=400;BYDAY=MO",
        "FREQ=MONTHLY;BYDAY=6MO",
        "FREQ=MONTHLY;BYDAY=53MO",
        "FREQ=YEARLY;BYMONTH=-1;BYDAY=1MO",
        "FREQ=YEARLY;BYMONTHDAY=1",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY" + ";" * 300,
        "FREQ=DAILY;COUNT=\u0661",
    ],
)
def test_a_rule_that_is_odd_or_has_no_day_is_refused_at_once(text):
    began = process_time()
    with pytest.raises(InvalidInput):
        parse_recurrence(text, date(2025, 6, 2))
    assert process_time() - began < 0.3
