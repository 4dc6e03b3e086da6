"""Valuation of a pocket: its value, its bid value, and its growth."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

import pytest

from billfold.bills.rules.market import Market
from billfold.bills.rules.pricing import subtract_spread
from billfold.bills.rules.valuation import value_positions
from billfold.platform.dates import et_instant
from billfold.platform.errors import NotFound
from billfold.platform.money import cents_for

MarketBuilder = Callable[..., Market]

ISSUED = date(2023, 11, 2)
PAR_MILLION = 10_000


def test_the_growth_rate_of_a_52_week_bill_matches_the_worked_example(flat_market, he0):
    valued = value_positions(
        [(he0.cusip, PAR_MILLION, 0)], 0, 0, market=flat_market(5_135, he0), at=et_instant(ISSUED, 12)
    )

    # $51,920.56 of discount over 364 days is 0.165091320716 cents a second; the mark is rounded.
    assert abs(valued.appreciation_per_second - Decimal("0.165091320716")) < Decimal("0.00000005")
    assert valued.appreciation_per_second.as_tuple().exponent == -12


def test_total_value_is_bills_at_their_mark_plus_cash(flat_market, he0):
    market = flat_market(5_135, he0)
    at = et_instant(ISSUED, 12) + timedelta(seconds=20)

    valued = value_positions([(he0.cusip, 13, 13)], 411, 7, market=market, at=at)

    (position,) = valued.positions
    assert position.bill is he0
    assert position.mark_price == market.mark(he0, at)
    assert position.market_value == cents_for(13, position.mark_price)
    assert position.yield_to_maturity == "0.05433"
    assert valued.total_value == position.market_value + 411
    assert valued.pricing_timestamp == et_instant(ISSUED, 12)
    assert valued.liquidation_value_t0 == cents_for(13, market.t0_bid(he0, at)) + 411 - 7
    assert valued.liquidation_value_t1 == cents_for(13, market.t1_bid(he0, at)) + 411 - 7


def test_the_value_slope_reaches_and_never_exceeds_par_at_maturity(flat_market, he0):
    market = flat_market(5_135, he0)
    valued = value_positions([(he0.cusip, 10, 10)], 0, 0, market=market, at=et_instant(date(2024, 3, 8), 12))
    seconds = (et_instant(he0.maturity, 0) - valued.pricing_timestamp).total_seconds()

    at_par = valued.total_value + valued.appreciation_per_second * Decimal(seconds)
    assert abs(at_par - 10 * 10_000) < Decimal("0.0001")


def test_unsettled_bills_are_excluded_from_the_same_day_value(flat_market, he0):
    market = flat_market(5_135, he0)
    at = et_instant(ISSUED, 12)

    valued = value_positions([(he0.cusip, 10, 4)], 0, 0, market=market, at=at)

    assert valued.liquidation_value_t0 == cents_for(4, market.t0_bid(he0, at))
    assert valued.liquidation_value_t1 == cents_for(10, market.t1_bid(he0, at))


def test_a_haircut_lowers_only_the_same_day_price(flat_market, he0):
    market = flat_market(5_135, he0)
    at = et_instant(ISSUED, 12)

    plain = value_positions([(he0.cusip, 10, 10)], 0, 0, market=market, at=at)
    cut = value_positions([(he0.cusip, 10, 10)], 0, 0, market=market, at=at, haircut_bps=10)

    assert cut.liquidation_value_t0 == cents_for(10, subtract_spread(market.t0_bid(he0, at), 10))
    assert cut.liquidation_value_t0 < plain.liquidation_value_t0
    assert cut.liquidation_value_t1 == plain.liquidation_value_t1
    assert cut.total_value == plain.total_value


def test_liquidation_value_is_not_negative_when_fees_exceed_the_holdings(market):
    valued = value_positions([], 5, 9, market=market, at=et_instant(ISSUED, 12))

    assert (valued.total_value, valued.positions) == (5, ())
    assert valued.liquidation_value_t0 == valued.liquidation_value_t1 == 0
    assert valued.appreciation_per_second == 0


@pytest.mark.parametrize(("hour", "minute"), [(0, 0), (5, 0), (7, 59), (8, 15)])
def test_a_matured_bill_stays_at_par_with_zero_slope(flat_market, he0, hour, minute):
    at = et_instant(he0.maturity, hour, minute)
    valued = value_positions([(he0.cusip, 3, 3)], 0, 0, market=flat_market(5_135, he0), at=at)

    assert valued.total_value == valued.liquidation_value_t0 == 30_000
    assert valued.liquidation_value_t1 == 30_000
    assert valued.appreciation_per_second == 0


def test_the_value_slope_does_not_exceed_par_on_the_night_of_a_maturity(flat_market, he0):
    """The last tick is on Wednesday at 17:00; its slope would continue after midnight."""
    market = flat_market(5_135, he0)
    for hours in range(-7, 9):
        now = et_instant(he0.maturity, 0) + timedelta(hours=hours)
        valued = value_positions([(he0.cusip, 10_000, 10_000)], 0, 0, market=market, at=now)
        seconds = Decimal((now - valued.pricing_timestamp).total_seconds())
        reached = valued.total_value + valued.appreciation_per_second * seconds
        assert round(reached) <= 100_000_000
        assert hours < 0 or reached == 100_000_000


def test_the_next_day_liquidation_value_may_exceed_the_same_day_value_on_a_weekend(flat_market, he0):
    valued = value_positions(
        [(he0.cusip, 1_000, 1_000)], 0, 0, market=flat_market(5_135, he0), at=et_instant(date(2023, 11, 4), 9)
    )

    assert valued.liquidation_value_t1 > valued.total_value > valued.liquidation_value_t0


def test_an_unknown_bill_is_not_valued(market):
    with pytest.raises(NotFound):
        value_positions([("912797PE2", 1, 1)], 0, 0, market=market, at=et_instant(ISSUED, 12))
