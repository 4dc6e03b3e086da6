from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.platform import dates

_INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


def test_the_eastern_date_is_used_after_midnight_utc():
    assert dates.et_date(datetime(2025, 6, 3, 3, 59, tzinfo=UTC)) == date(2025, 6, 2)
    assert dates.et_date(datetime(2025, 6, 3, 4, 0, tzinfo=UTC)) == date(2025, 6, 3)
    assert dates.et_date(datetime(2025, 12, 3, 4, 59, tzinfo=UTC)) == date(2025, 12, 2)


def test_an_hour_in_new_york_is_an_instant_in_utc():
    for day, hour in ((date(2025, 6, 2), 12), (date(2025, 12, 2), 13)):
        expected = datetime.combine(day, time(hour, 30), UTC)
        assert dates.et_instant(day, 8, 30) == dates.et_instant(day, time(8, 30)) == expected
        assert dates.et_instant(day, time(8, 30)).tzinfo is UTC


@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.times())
def test_an_eastern_instant_falls_on_its_date(day, clock_time):
    assert dates.et_date(dates.et_instant(day, clock_time)) == day


@given(_INSTANTS)
def test_an_instant_round_trips_through_text(at):
    text = dates.iso_z(at)

    assert datetime.fromisoformat(text) == at
    assert text.endswith("Z")
    assert len(text) == len("2025-06-02T13:00:00.000000Z")


def test_an_instant_of_any_zone_is_formatted_in_utc():
    at = datetime(2025, 6, 2, 9, tzinfo=timezone(timedelta(hours=-4)))

    assert dates.iso_z(at) == "2025-06-02T13:00:00.000000Z"


@pytest.mark.parametrize("read", [dates.et_date, dates.iso_z, dates.require_aware])
def test_date_functions_refuse_a_naive_instant(read):
    with pytest.raises(ValueError, match="time zone"):
        read(datetime(2025, 6, 2, 9))


def test_a_date_is_parsed_only_in_iso_format():
    assert dates.parse_day("2025-06-02") == date(2025, 6, 2)
    for wrong in ("20250602", "2025-W23-1", "2025-6-2", "2025-02-30", "٢٠٢٥-٠٦-٠٢", "2025-06-02 ", ""):
        with pytest.raises(ValueError, match=r"day|month|YYYY"):
            dates.parse_day(wrong)
