"""Prices for any rate, any term, any instant."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from billfold.bills.rules import pricing, yields
from billfold.bills.rules.market import Market
from billfold.bills.types import Bill, DailyRates, Quote, isin_of
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant
from billfold.platform.money import cents_for

PAR = 100_000_000
CALENDARS = Calendars()
HE0 = Bill(
    "912797HE0", isin_of("912797HE0"), date(2024, 10, 31), first_issue=date(2023, 11, 2), original_term="52-Week"
)

rates = st.integers(0, 4_000).map(lambda tick: tick * pricing.RATE_TICK_MILLI)
instants = st.integers(0, 366 * 86_400).map(
    lambda seconds: datetime(2023, 11, 2, 13, tzinfo=UTC) + timedelta(seconds=seconds)
)
days_left = st.integers(1, 366)
days = st.dates(date(2000, 1, 1), date(2098, 1, 1))
curves = st.dictionaries(st.integers(1, 400), rates, min_size=1, max_size=7).map(lambda nodes: sorted(nodes.items()))


def flat_market(rate_milli: int) -> Market:
    published = DailyRates(date(2023, 1, 3), (Quote(26, rate_milli, rate_milli),))
    return Market(CALENDARS, [HE0], [], rates=[published])


@given(rates, days_left)
def test_a_rate_is_recovered_from_its_price(rate, left):
    assert pricing.rate_from_price(pricing.price_from_rate(rate, left), left) == rate


@given(st.integers(80_000_000, PAR), days_left)
def test_a_price_is_recovered_within_one_rate_tick(price, left):
    rate = pricing.rate_from_price(price, left)

    # Half a thousandth of a percent over the days left, and the rounding of the price itself.
    assert abs(pricing.price_from_rate(rate, left) - price) <= 500 * left // 360 + 1


@given(rates, st.integers(2, 366))
def test_the_price_rises_as_days_pass_and_falls_as_rates_rise(rate, left):
    price = pricing.price_from_rate(rate, left)

    assert price <= pricing.price_from_rate(rate, left - 1) <= PAR
    assert price > pricing.price_from_rate(rate + pricing.RATE_TICK_MILLI, left)


@given(rates.filter(bool), days_left, days)
def test_the_investment_rate_exceeds_the_discount_rate(rate, left, settles):
    price = pricing.price_from_rate(rate, left)
    invested = yields.investment_rate(price, settles, settles + timedelta(days=left))

    # One unit of the last place for the two roundings of very small rates and terms.
    assert invested * 1_000 >= rate - 1


@given(curves, st.integers(-5, 500))
def test_an_interpolated_rate_lies_between_its_neighbors_on_the_grid(nodes, left):
    rate = pricing.interpolated_rate(nodes, left)
    below = [node for node in nodes if node[0] <= left][-1:] or nodes[:1]
    above = [node for node in nodes if node[0] >= left][:1] or nodes[-1:]

    assert rate % pricing.RATE_TICK_MILLI == 0
    assert min(below[0][1], above[0][1]) <= rate <= max(below[0][1], above[0][1])


@given(curves)
def test_interpolation_is_monotone_between_two_terms(nodes):
    for (start, low), (end, high) in pairwise(nodes):
        between = [pricing.interpolated_rate(nodes, left) for left in range(start, end + 1)]
        assert between == sorted(between, reverse=low > high)
        assert (between[0], between[-1]) == (low, high)


@given(rates.filter(bool), instants)
def test_a_position_value_does_not_jump_at_a_constant_rate(rate, at):
    market = flat_market(rate)
    before, after = at - timedelta(microseconds=1), at

    assume(CALENDARS.pricing_day(before) == CALENDARS.pricing_day(after))
    step = market.price_at(HE0, after) - market.price_at(HE0, before)
    assert 0 <= step <= 1
    assert abs(cents_for(100, step + PAR) - cents_for(100, PAR)) <= 1


@given(rates.filter(bool), st.dates(date(2023, 11, 3), date(2024, 10, 30)))
def test_the_opening_of_a_day_changes_a_price_only_by_rounding(rate, day):
    market = flat_market(rate)
    opening = CALENDARS.opens_at(day)

    step = market.price_at(HE0, opening) - market.price_at(HE0, opening - timedelta(microseconds=1))

    # Two lines meet here, of two days' bids. They differ by the rounding of each, and by the hour
    # of a change to or from summer time: a whole hour's accretion when the change lies between
    # the two days, else that hour spread over the days left.
    earlier, today = (CALENDARS.pricing_day(opening - timedelta(microseconds=1)), CALENDARS.pricing_day(opening))
    passed, left = (today - earlier).days, (HE0.maturity - earlier).days
    changed = et_instant(today, 0).hour != et_instant(earlier, 0).hour
    an_hour = rate * 1_000 // (360 * 24) + 1
    assert abs(step) <= 2 + (an_hour if changed else an_hour * passed // left + 1)


@given(rates, st.integers(0, 10**9))
def test_a_bill_is_at_par_exactly_from_maturity(rate, seconds):
    market = flat_market(rate)
    matures = et_instant(HE0.maturity, 0)

    assert market.price_at(HE0, matures + timedelta(seconds=seconds)) == PAR
    assert market.price_at(HE0, matures - timedelta(seconds=1)) <= PAR


@given(rates, instants)
def test_the_ask_is_never_below_the_bid_and_the_next_day_bid_never_below_the_same_day_bid(rate, at):
    market = flat_market(rate)

    assert market.t0_bid(HE0, at) <= market.t1_bid(HE0, at) <= PAR
    assert market.t0_bid(HE0, at) <= market.mark(HE0, at) <= market.price_at(HE0, at) <= PAR
    assert market.tick_at(at) <= at
    if CALENDARS.is_trading(at):
        assert market.ask(HE0, at) >= market.t1_bid(HE0, at)
