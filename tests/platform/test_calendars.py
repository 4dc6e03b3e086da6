import csv
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from billfold.platform.calendars import Calendars, DayOverride, _closing_time
from billfold.platform.dates import ET, et_date, et_instant

CALENDARS = Calendars()
_ONE_DAY = timedelta(days=1)
_FIRST, _LAST = date(2023, 1, 1), date(2027, 12, 31)
_DAYS = st.dates(_FIRST, _LAST)
_INSTANTS = st.datetimes(datetime(2023, 1, 2), datetime(2027, 12, 30), timezones=st.just(UTC))
# Instants at which answers change, and their neighbours: where an off-by-one would hide.
_EDGES = st.builds(
    lambda day, clock_time, off: et_instant(day, clock_time) + timedelta(microseconds=off),
    st.dates(date(2023, 1, 3), date(2027, 12, 28)),
    st.sampled_from([time(), time(8), time(12), time(14), time(15), time(17), time(23, 59, 59)]),
    st.integers(-1, 1),
)
_MOMENTS = st.one_of(_INSTANTS, _EDGES)


def _published() -> dict[date, dict[str, str]]:
    with (Path(__file__).parent / "us_holidays.csv").open(newline="") as rows:
        return {date.fromisoformat(row["date"]): row for row in csv.DictReader(rows)}


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def test_every_calendar_day_from_2023_to_2027_is_as_published():
    published = _published()

    for day in _days(_FIRST, _LAST):
        row = published.get(day, {})
        weekday = day.weekday() < 5
        assert CALENDARS.is_bond_day(day) == (weekday and row.get("bond_market") != "full"), day
        assert CALENDARS.is_fed_day(day) == (weekday and row.get("fedwire_fed") != "closed"), day
        assert CALENDARS.is_settlement_day(day) == (CALENDARS.is_bond_day(day) and CALENDARS.is_fed_day(day)), day
        closes = row.get("bond_market_early_close_et") or "17:00"
        assert CALENDARS.closes_at(day) == et_instant(day, time.fromisoformat(closes)), day


@given(_DAYS)
def test_the_next_business_day_is_the_first_open_one(day):
    after = CALENDARS.next_settlement_day(day)
    fed = CALENDARS.next_fed_day(day)

    assert after > day
    assert CALENDARS.is_settlement_day(after)
    assert not any(map(CALENDARS.is_settlement_day, _days(day + _ONE_DAY, after - _ONE_DAY)))
    assert day < fed <= after
    assert CALENDARS.is_fed_day(fed)
    assert not any(map(CALENDARS.is_fed_day, _days(day + _ONE_DAY, fed - _ONE_DAY)))


@given(_DAYS)
def test_a_date_on_or_after_moves_forward_only_on_closed_days(day):
    settles = CALENDARS.settlement_on_or_after(day)
    pays = CALENDARS.fed_on_or_after(day)

    assert settles == (day if CALENDARS.is_settlement_day(day) else CALENDARS.next_settlement_day(day))
    assert pays == (day if CALENDARS.is_fed_day(day) else CALENDARS.next_fed_day(day))
    assert CALENDARS.add_fed_days(day, 0) == pays
    assert CALENDARS.matures_at(day) == et_instant(pays, 8, 30)


@given(_DAYS)
def test_the_previous_settlement_day_is_the_latest_past_one(day):
    before = CALENDARS.settlement_on_or_before(day)

    assert before <= day < CALENDARS.next_settlement_day(before)
    assert CALENDARS.is_settlement_day(before)


def test_bond_days_are_counted_from_the_day_after_through_the_last():
    thursday, friday, monday = date(2025, 5, 29), date(2025, 5, 30), date(2025, 6, 2)

    assert [CALENDARS.count_bond_days(thursday, day) for day in (thursday, friday, monday)] == [0, 1, 2]


@given(_DAYS, st.integers(1, 70))
def test_fed_days_are_counted_forward_and_backward(day, n):
    forward = CALENDARS.add_fed_days(day, n)
    back = CALENDARS.add_fed_days(forward, -n)

    assert sum(map(CALENDARS.is_fed_day, _days(day + _ONE_DAY, forward))) == n
    assert CALENDARS.is_fed_day(back)
    assert back == day or not CALENDARS.is_fed_day(day)


@given(_MOMENTS)
def test_trading_and_investing_follow_the_hours(at):
    day, clock_time = et_date(at), at.astimezone(ET).time()
    opens, closes = CALENDARS.opens_at(day), CALENDARS.closes_at(day)

    trading = CALENDARS.is_bond_day(day) and opens <= at < closes

    assert CALENDARS.is_trading(at) == trading
    assert CALENDARS.may_invest(at) == (trading and CALENDARS.is_fed_day(day) and clock_time < time(15))


@given(_MOMENTS)
def test_the_business_date_rolls_at_the_close_of_a_settlement_day(at):
    day = et_date(at)
    stays = CALENDARS.is_settlement_day(day) and at < CALENDARS.closes_at(day)

    assert CALENDARS.business_date(at) == (day if stays else CALENDARS.next_settlement_day(day))


@given(_MOMENTS, _MOMENTS)
def test_calendar_results_never_decrease_with_time(one, payroll_pocket):
    before, after = sorted([one, payroll_pocket])

    assert CALENDARS.business_date(before) <= CALENDARS.business_date(after)
    assert CALENDARS.pricing_day(before) <= CALENDARS.pricing_day(after)
    assert CALENDARS.last_tick(before) <= CALENDARS.last_tick(after)
    assert CALENDARS.next_open(before) <= CALENDARS.next_open(after)


@given(_MOMENTS)
@example(et_instant(date(2025, 6, 2), 17))
@example(et_instant(date(2025, 7, 3), 14))
def test_the_last_tick_is_the_latest_whole_minute_of_market_time(at):
    tick = CALENDARS.last_tick(at)
    day = CALENDARS.pricing_day(at)

    assert tick <= at
    assert tick.astimezone(UTC).replace(second=0, microsecond=0) == tick
    assert CALENDARS.opens_at(day) <= tick <= CALENDARS.closes_at(day)
    assert tick == CALENDARS.closes_at(day) or at - tick < timedelta(minutes=1)
    assert CALENDARS.last_tick(tick) == tick
    assert CALENDARS.pricing_day(tick) == day


@given(_MOMENTS)
def test_the_pricing_day_is_the_latest_that_has_opened(at):
    day = CALENDARS.pricing_day(at)
    later = _days(day + _ONE_DAY, et_date(at))

    assert CALENDARS.is_bond_day(day)
    assert CALENDARS.opens_at(day) <= at
    assert not any(CALENDARS.is_bond_day(d) and CALENDARS.opens_at(d) <= at for d in later)


@given(_MOMENTS)
@example(et_instant(date(2025, 6, 2), 8))
def test_the_next_open_is_the_first_future_opening(at):
    opens = CALENDARS.next_open(at)
    day = et_date(opens)

    assert opens > at
    assert opens == et_instant(day, 8)
    assert CALENDARS.may_invest(opens)
    earlier = _days(et_date(at), day - _ONE_DAY)
    assert not any(CALENDARS.is_settlement_day(d) and CALENDARS.opens_at(d) > at for d in earlier)


@given(_MOMENTS, st.integers(-14, 14))
def test_calendar_results_do_not_depend_on_the_time_zone_of_an_instant(at, hours):
    moved = at.astimezone(timezone(timedelta(hours=hours)))

    assert CALENDARS.business_date(moved) == CALENDARS.business_date(at)
    assert CALENDARS.last_tick(moved) == CALENDARS.last_tick(at)
    assert CALENDARS.last_tick(moved).tzinfo is UTC


@given(_MOMENTS)
def test_extended_hours_reach_into_the_next_utc_day(at):
    calendars = Calendars(opens=time(6), closes=time(23, 30), invests_until=time(22))
    day = et_date(at)

    assert calendars.is_trading(at) == (
        calendars.is_bond_day(day) and calendars.opens_at(day) <= at < calendars.closes_at(day)
    )
    assert calendars.may_invest(at) == (
        calendars.is_trading(at) and calendars.is_fed_day(day) and at.astimezone(ET).time() < time(22)
    )
    assert calendars.business_date(at) >= day


def test_a_calendar_override_can_close_a_day_close_early_or_open_a_holiday():
    closed, early, holiday = date(2025, 6, 4), date(2025, 6, 5), date(2025, 10, 13)
    calendars = Calendars(
        {
            closed: DayOverride(fed_open=False, bond_open=False),
            early: DayOverride(closes=time(11)),
            holiday: DayOverride(fed_open=True, bond_open=True),
        }
    )

    assert not calendars.is_fed_day(closed)
    assert not calendars.is_bond_day(closed)
    assert calendars.business_date(et_instant(closed, 10)) == early
    assert calendars.closes_at(early) == et_instant(early, 11)
    assert not calendars.may_invest(et_instant(early, 11))
    assert calendars.is_fed_day(early)
    assert calendars.is_settlement_day(holiday)


def test_calendar_overrides_are_immutable_after_construction():
    overrides = {date(2025, 6, 4): DayOverride(bond_open=False)}
    calendars = Calendars(overrides)

    overrides.clear()

    assert not calendars.is_bond_day(date(2025, 6, 4))
    assert hash(calendars) != hash(Calendars())


@pytest.mark.parametrize(
    "hours",
    [
        {"opens": time(15)},
        {"invests_until": time(17, 1)},
        {"overrides": {date(2025, 6, 4): DayOverride(closes=time(8))}},
        {"overrides": {date(2025, 6, 4): DayOverride(closes=time(18))}},
    ],
)
def test_calendar_hours_out_of_order_are_refused(hours):
    with pytest.raises(ValueError, match=r"market|hours"):
        Calendars(**hours)


def test_investing_is_allowed_until_the_close_and_an_override_may_repeat_the_default_hour():
    day = date(2025, 6, 4)
    calendars = Calendars({day: DayOverride(closes=time(17))}, invests_until=time(17))

    assert calendars.may_invest(et_instant(day, 16, 59))


def test_calendars_refuse_a_naive_instant():
    with pytest.raises(ValueError, match="time zone"):
        CALENDARS.business_date(datetime(2025, 6, 2, 9))


def test_an_early_close_without_a_known_hour_is_refused():
    assert _closing_time("Good Friday (markets close at 12:00pm)") == time(12)
    assert _closing_time("Christmas Eve (markets close at 2:30pm)") == time(14, 30)
    with pytest.raises(ValueError, match="without an hour"):
        _closing_time("Christmas Eve")
