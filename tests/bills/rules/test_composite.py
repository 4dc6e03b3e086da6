"""Composites of dealers' quotes, at 11:00 on Monday 2025-06-02; the published 4-week rate is about 4.2 %."""

from datetime import UTC, date, datetime, timedelta

import pytest

from billfold.bills import market_data
from billfold.bills.rules import pricing
from billfold.bills.rules.composite import QuoteLimits, compose
from billfold.bills.rules.market import Market
from billfold.bills.types import TwoSidedQuote
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant

NOW = datetime(2025, 6, 2, 15, tzinfo=UTC)
TODAY = date(2025, 6, 2)
LIMITS = QuoteLimits(timedelta(minutes=10), max_distance_bps=10, max_jump_bps=50)


def market_of(*strikes):
    rates = [row for row in market_data.rates() if row.day < TODAY]
    bills, auctions = market_data.securities(), market_data.auctions()
    return Market(
        Calendars(), bills, auctions, rates=rates, age_max_days=1, strikes=strikes, quotes_age_max=LIMITS.max_age
    )


MARKET = market_of()
BILL = MARKET.on_the_run(4, TODAY)
DAYS = (BILL.maturity - date(2025, 6, 3)).days
PUBLISHED = MARKET.bid_rate(BILL, TODAY)


def quote(dealer="x", *, above=0, spread=10, ago=60, cusip=BILL.cusip):
    """A quote with a bid rate so many thousandths of a percent above the published one, and so many seconds old."""
    bid, ask = (pricing.price_from_rate(PUBLISHED + milli, DAYS) for milli in (above, above - spread))
    return TwoSidedQuote(dealer, cusip, NOW - timedelta(seconds=ago), bid, ask)


def bid_above(*quotes, market=MARKET):
    """Return how far the composite is above the published rate, or why there is none."""
    made = compose(quotes, market, NOW, LIMITS)
    return made.strike.points[0].bid_milli - PUBLISHED if made.strike else made.refused


@pytest.mark.parametrize(
    ("quotes", "above"),
    [
        ([quote(above=20)], 20),
        ([quote("a", above=20), quote("b", above=40)], 40),  # the bank buys at the lower price
        ([quote("a", above=20), quote("b", above=40), quote("c", above=60)], 40),
        ([quote("a", above=20), quote("b", above=40), quote("c", above=400)], 40),
        ([quote("a", above=20, ago=120), quote("a", above=30, ago=60)], 30),
        ([quote("a", above=-490)], -490),
    ],
)
def test_the_composite_is_the_median_without_outliers(quotes, above):
    assert bid_above(*quotes) == pytest.approx(above, abs=1)


@pytest.mark.parametrize(
    ("quotes", "reason"),
    [
        ([quote(ago=601)], "x {}: it is too old"),
        ([quote(ago=86_400)], "x {}: it is too old"),
        ([quote(ago=-6)], "x {}: it is quoted in the future"),
        ([quote(spread=-10)], "x {}: the bid is above the ask"),
        ([quote(cusip="912797ZZ1")], "x 912797ZZ1: no such bill"),
        ([quote("a"), quote("b", above=101)], "{}: 2 dealers disagree by more than 10 bp"),
        ([quote(above=502)], "{}: its rate of"),
        ([quote(above=-502)], "{}: its rate of"),
        ([quote(spread=510)], "{}: its rate of"),
    ],
)
def test_quotes_make_no_price_and_say_why(quotes, reason):
    (said,) = bid_above(*quotes)
    assert said.startswith(reason.format(BILL.cusip))


def test_a_source_cannot_walk_away_in_small_steps_nor_go_back_to_earlier_quotes():
    strike = compose([quote(above=490)], MARKET, NOW, LIMITS).strike
    later = market_of(strike)
    assert later.bid_rate(BILL, TODAY) == pytest.approx(PUBLISHED + 490, abs=3)
    assert "more than 50 bp from the published one" in bid_above(quote(above=520, ago=0), market=later)[0]
    assert bid_above(quote(above=0, ago=90), market=later) == ()
    assert bid_above(quote(above=480, ago=0), market=later) == pytest.approx(480, abs=1)


def test_a_quoted_bill_has_the_quoted_bid_and_ask_and_nothing_trades_by_old_quotes():
    made = compose([quote(above=45, spread=20)], MARKET, NOW, LIMITS).strike
    assert made is not None
    market = market_of(made)
    assert market.t1_bid(BILL, NOW) == pytest.approx(made.points[0].quotes[0].bid_micros, abs=3_000)
    assert market.spread(TODAY) == pytest.approx(20, abs=1)
    assert market.ask(BILL, NOW) > pricing.price_from_rate(PUBLISHED + 45 - 5, DAYS)
    assert market.is_current(NOW)
    assert market.is_current(made.oldest_at + timedelta(minutes=10))
    assert not market.is_current(made.oldest_at + timedelta(minutes=11))
    assert not market.is_current(et_instant(date(2025, 6, 3), 8)), "yesterday's quotes"
    assert not MARKET.is_current(NOW), "none yet"
