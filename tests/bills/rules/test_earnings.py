"""Earnings: the identity, the ends of a period, and sums."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from billfold.bills.rules.earnings import (
    EarningsEntry,
    PocketState,
    compute_earnings,
    period_bounds,
    shown_dates,
    sum_earnings,
)
from billfold.bills.rules.market import Market
from billfold.bills.rules.valuation import value_positions
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant
from billfold.platform.errors import InvalidInput, InvariantError
from billfold.platform.money import cents_for

MarketBuilder = Callable[..., Market]

START, END = et_instant(date(2023, 11, 2), 0), et_instant(date(2023, 12, 1), 0)
NOW = datetime(2025, 6, 4, 15, 30, tzinfo=UTC)
CREATED = datetime(2025, 5, 20, 14, tzinfo=UTC)


def test_a_held_bill_earns_its_price_increase(flat_market, he0):
    market = flat_market(5_135, he0)
    state = PocketState(((he0.cusip, 100),), cash=50, earnings_basis=948_000, inflow=948_050)

    earned = compute_earnings(state, START, state, end_at=END, market=market)

    assert earned.start_value == cents_for(100, market.mark(he0, START)) + 50
    assert earned.end_value == cents_for(100, market.mark(he0, END)) + 50
    assert earned.earnings == earned.unrealised_change == earned.end_value - earned.start_value > 0
    assert (earned.realised, earned.contributions, earned.withdrawals) == (0, 0, 0)


def test_earnings_exclude_flows_and_add_back_fees(flat_market, he0):
    market = flat_market(5_135, he0)
    before = PocketState(cash=1_000_000, inflow=1_070_013, outflow=70_000, fees=30, realised=17)
    # 100 bills bought for 948,100; 30 of them sold for 284,900; 25 charged; 20,000 paid out.
    after = PocketState(
        ((he0.cusip, 70),),
        cash=1_000_000 - 948_100 + 284_900 - 25 - 20_000 + 500,
        earnings_basis=948_100 - 284_430,
        inflow=1_070_513,
        outflow=90_000,
        fees=55,
        realised=17 + 284_900 - 284_430,
    )

    earned = compute_earnings(before, START, after, end_at=END, market=market)

    assert (earned.contributions, earned.withdrawals, earned.fees) == (500, 20_000, 25)
    assert earned.realised == 470
    assert earned.earnings == earned.realised + earned.unrealised_change
    assert earned.earnings_net == earned.earnings - 25
    assert earned.end_value - earned.start_value == 500 - 20_000 + earned.earnings_net


def test_a_lost_cent_in_an_earnings_entry_raises_an_invariant_error(flat_market, he0):
    before = PocketState(cash=100, inflow=100)
    after = PocketState(cash=99, inflow=100)

    with pytest.raises(InvariantError) as caught:
        compute_earnings(before, START, after, end_at=END, market=flat_market(5_135, he0))
    assert caught.value.facts["earnings_net"] == -1


def test_earnings_up_to_now_equal_the_portfolio_for_any_period_start(flat_market, he0):
    market = flat_market(5_135, he0)
    state = PocketState(((he0.cusip, 100),), earnings_basis=948_000)
    evening, maturity_morning = et_instant(date(2023, 11, 20), 22), et_instant(he0.maturity, 5)
    monday = et_instant(date(2023, 11, 6), 0)

    for start, now in ((START, evening), (START, maturity_morning), (monday, monday + timedelta(hours=6))):
        earned = compute_earnings(state, start, state, end_at=now, market=market)

        assert earned.end_value == value_positions([(he0.cusip, 100, 100)], 0, 0, market=market, at=now).total_value


def test_the_earnings_aggregate_sums_every_field():
    one, two, both = (EarningsEntry(*range(step, 10 * step, step)) for step in (1, 10, 11))

    assert sum_earnings([one, two]) == both
    assert sum_earnings([]) == (0,) * 9


@pytest.mark.parametrize(
    ("period", "start"),
    [
        ("wtd", et_instant(date(2025, 6, 2), 0)),
        ("mtd", et_instant(date(2025, 6, 1), 0)),
        ("ytd", et_instant(date(2025, 1, 1), 0)),
        ("all-time", CREATED),
    ],
)
def test_a_period_runs_from_its_eastern_start_to_now(period, start):
    assert period_bounds(period, NOW, CREATED)[:3] == (start, NOW, True)


def test_the_week_of_an_early_utc_monday_is_the_previous_new_york_week():
    late = datetime(2025, 6, 2, 3, tzinfo=UTC)

    assert period_bounds("wtd", late, CREATED).start == et_instant(date(2025, 5, 26), 0)


@pytest.mark.parametrize(
    ("date_from", "date_to", "bounds"),
    [
        (
            date(2025, 5, 30),
            date(2025, 6, 1),
            (et_instant(date(2025, 5, 30), 0), et_instant(date(2025, 6, 2), 0), False),
        ),
        (date(2025, 6, 4), date(2025, 6, 4), (et_instant(date(2025, 6, 4), 0), NOW, True)),
        (date.min, date.max, (et_instant(date.min, 0), NOW, True)),
        (
            NOW - timedelta(hours=30),
            NOW - timedelta(hours=1),
            (NOW - timedelta(hours=30), NOW - timedelta(hours=1), False),
        ),
        (
            NOW - timedelta(hours=1),
            NOW - timedelta(hours=1),
            (NOW - timedelta(hours=1), NOW - timedelta(hours=1), False),
        ),
        (NOW - timedelta(hours=1), NOW, (NOW - timedelta(hours=1), NOW, True)),
        (NOW, NOW + timedelta(hours=1), (NOW, NOW, True)),
    ],
    ids=[
        "whole days",
        "through today",
        "through the end of the calendar",
        "instants",
        "one instant",
        "an end that is now",
        "a start that is now",
    ],
)
def test_a_date_range_covers_whole_days_and_ends_at_the_latest_now(date_from, date_to, bounds):
    period = period_bounds("range", NOW, CREATED, date_from=date_from, date_to=date_to)
    assert period[:3] == bounds
    instants = isinstance(date_from, datetime), isinstance(date_to, datetime)
    shown = shown_dates("range", period, Calendars())
    assert period.by_instants == tuple(isinstance(each, datetime) for each in shown) == instants


@pytest.mark.parametrize(
    ("period", "date_from", "date_to", "field"),
    [
        ("mtd", date(2025, 6, 1), None, "date_from"),
        ("mtd", None, date(2025, 6, 1), "date_to"),
        ("range", None, date(2025, 6, 1), "date_from"),
        ("range", date(2025, 6, 1), None, "date_to"),
        ("range", date(2025, 6, 2), date(2025, 5, 31), "date_to"),
        ("range", date(2025, 6, 5), date(2025, 6, 6), "date_from"),
        ("range", datetime(2025, 6, 1, 12), date(2025, 6, 2), "date_from"),
        ("range", datetime(1, 1, 1, tzinfo=UTC), date(2025, 6, 2), "date_from"),
        ("range", date(2025, 6, 1), datetime(1, 1, 1, tzinfo=UTC), "date_to"),
    ],
)
def test_an_invalid_period_is_refused(period, date_from, date_to, field):
    with pytest.raises(InvalidInput) as caught:
        period_bounds(period, NOW, CREATED, date_from=date_from, date_to=date_to)

    assert [mistake.loc for mistake in caught.value.errors] == [("query", field)]


def test_a_range_without_dates_reports_both_fields():
    with pytest.raises(InvalidInput) as caught:
        period_bounds("range", NOW, CREATED)

    assert len(caught.value.errors) == 2
