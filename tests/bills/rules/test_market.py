"""The bill on the run, its rate and its price."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from billfold.bills import market_data
from billfold.bills.rules.market import Market
from billfold.bills.rules.pricing import price_from_rate
from billfold.bills.types import Auction, Bill, DailyRates, Quote, isin_of
from billfold.platform.dates import et_instant
from billfold.platform.errors import NotFound

MarketBuilder = Callable[..., Market]

PAR = 100_000_000
MONDAY = date(2025, 6, 2)


def noon(day: date) -> datetime:
    return et_instant(day, 12)


@pytest.mark.parametrize(
    ("weeks", "day", "cusip"),
    [
        (4, date(2026, 8, 10), "912797UW5"),
        (4, date(2026, 8, 11), "912797VB0"),
        (13, date(2026, 8, 12), "912797UM7"),
        (13, date(2026, 8, 13), "912797UY1"),
        (26, date(2026, 8, 13), "912797WB9"),
        (52, date(2026, 8, 11), "912797VR5"),
        (26, date(2026, 5, 21), "912797UZ8"),
        (52, date(2023, 11, 2), "912797HE0"),
        # Not the cash management bill of 42 days.
        (4, date(2023, 11, 16), "912797HU4"),
    ],
)
def test_the_newest_issued_bill_is_on_the_run(market, weeks, day, cusip):
    assert market.on_the_run(weeks, day).cusip == cusip


@pytest.mark.parametrize(
    ("weeks", "last_recorded", "maturity", "cusip"),
    [
        (4, date(2026, 8, 19), date(2026, 9, 15), "912797VC8"),
        # As the Treasury did: its 26-week bill of 2026-05-21 once more.
        (13, date(2026, 8, 21), date(2026, 11, 19), "912797UZ8"),
        (26, date(2026, 8, 21), date(2027, 2, 18), "912797TV9"),
    ],
)
def test_the_weekday_rule_returns_a_recorded_bill_of_the_same_maturity(market, weeks, last_recorded, maturity, cusip):
    recorded = market.on_the_run(weeks, last_recorded)
    follows = market.on_the_run(weeks, last_recorded + timedelta(days=1))

    assert recorded.maturity < follows.maturity == maturity
    assert follows is market.bill(cusip)


def test_the_weekday_rule_simulates_a_bill_for_a_maturity_without_a_recorded_bill(market):
    recorded = market.on_the_run(52, date(2026, 9, 11))
    follows = market.on_the_run(52, date(2026, 9, 12))

    assert not recorded.simulated
    assert follows.simulated
    assert follows.maturity == date(2027, 9, 2)
    assert follows.description == "US T-Bill (simulated)"
    assert market.bill(follows.cusip) is follows


def test_on_the_run_bills_have_distinct_maturities(market):
    days = [date(2025, 6, 2) + timedelta(days=n) for n in range(3 * 365)]
    sold = {market.on_the_run(weeks, day) for day in days for weeks in (4, 13, 26, 52)}

    assert any(bill.simulated for bill in sold)
    assert len({bill.maturity for bill in sold}) == len(sold)


def test_bills_of_one_maturity_are_the_same_bill_in_every_term(market):
    half_year = market.on_the_run(26, date(2027, 1, 14))
    quarter = market.on_the_run(13, date(2027, 4, 15))

    assert quarter is half_year
    assert half_year.first_issue == date(2027, 1, 14)


def test_the_weekday_rule_applies_before_the_first_auction(market):
    assert market.on_the_run(13, date(2017, 6, 1)).maturity == date(2017, 8, 31)
    # What matures then is on record, but nobody can have it before its first issue.
    assert market.on_the_run(52, date(2017, 12, 1)).simulated


def test_a_bill_that_matures_by_settlement_is_not_on_the_run(calendars):
    old = Bill(
        "912797UZ8", isin_of("912797UZ8"), date(2025, 6, 3), first_issue=date(2024, 12, 5), original_term="26-Week"
    )
    sold = Auction(
        cusip=old.cusip,
        term="4-Week",
        auction_date=date(2025, 5, 26),
        issue_date=date(2025, 5, 27),
        maturity=old.maturity,
    )
    rates = [DailyRates(date(2025, 1, 2), (Quote(4, 4_200, 4_300),))]
    market = Market(calendars, [old], [sold], rates=rates)

    assert market.on_the_run(4, date(2025, 5, 30)) is old
    assert market.on_the_run(4, MONDAY).simulated


def test_adding_bills_of_a_newer_market_keeps_the_earlier_bills(flat_market, he0):
    before = replace(he0, cusip="912797HU4")
    market = flat_market(4_000, before)
    market.add_bills_of(flat_market(4_000, he0))

    assert [market.bill(each.cusip) for each in (before, he0)] == [before, he0]


def test_an_unsold_term_is_not_found(market):
    with pytest.raises(NotFound):
        market.on_the_run(17, MONDAY)


@pytest.mark.parametrize("cusip", ["912797PE2", "SIM26B190", "037833100"])
def test_an_unknown_cusip_is_not_found(market, cusip):
    with pytest.raises(NotFound):
        market.bill(cusip)


def test_a_market_without_a_curve_is_refused(calendars):
    with pytest.raises(ValueError, match="at least one day"):
        Market(calendars, [], [], rates=[])


def test_the_bid_is_the_published_rate_at_a_published_term(market):
    # 2025-06-05 published 4.19, 4.26 and 4.15 % for 4, 13 and 26 weeks.
    quotes = {
        quote.weeks: quote.discount_milli
        for row in market_data.rates()
        if row.day == date(2025, 6, 5)
        for quote in row.quotes
    }

    for weeks in (4, 13, 26):
        maturity = date(2025, 6, 5) + timedelta(weeks=weeks)
        bill = Bill(f"{weeks}W", "", maturity, first_issue=date(2025, 6, 5), original_term=f"{weeks}-Week")
        assert market.bid_rate(bill, date(2025, 6, 5)) == quotes[weeks]
        assert market.ask_rate(bill, date(2025, 6, 5)) == quotes[weeks] - 5


def test_the_curve_of_the_last_published_day_is_carried_forward(market):
    bill = market.on_the_run(26, date(2026, 8, 13))

    # Same days to maturity, one year on: the same node, so the same rate.
    simulated = market.on_the_run(26, date(2027, 8, 12))
    assert market.bid_rate(bill, date(2026, 8, 13)) == market.bid_rate(simulated, date(2027, 8, 12))
    # A Sunday has Friday's curve; before all data the first one counts.
    long_bill = market.bill("912797VR5")
    assert market.bid_rate(long_bill, date(2026, 8, 9)) > 0
    assert market.bid_rate(long_bill, date(2020, 1, 1)) == 4_500


def test_the_ask_is_never_below_zero(flat_market, he0):
    market = flat_market(0, he0)

    assert market.ask_rate(he0, MONDAY) == 0
    assert market.ask(he0, noon(date(2023, 11, 2))) == PAR


def test_t0_bids_settle_today_and_t1_bids_and_asks_on_the_next_business_day(flat_market, he0):
    market = flat_market(5_135, he0)
    thursday = noon(date(2023, 11, 2))

    assert market.t0_bid(he0, thursday) == 94_807_944
    assert market.t1_bid(he0, thursday) == price_from_rate(5_135, 363)
    assert market.ask(he0, thursday) == price_from_rate(5_130, 363)
    assert market.settles_on(thursday) == date(2023, 11, 3)


def test_a_forward_sale_is_priced_for_its_settlement_day(flat_market, he0):
    market = flat_market(5_135, he0)
    friday, monday, tuesday = date(2023, 11, 3), date(2023, 11, 6), date(2023, 11, 7)

    # After the close, and on the weekend, a trade belongs to Monday and settles a day later.
    for at, settles_on in (
        (noon(friday), monday),
        (et_instant(friday, 20), tuesday),
        (noon(date(2023, 11, 4)), tuesday),
        (et_instant(monday, 7), tuesday),
    ):
        assert market.settles_on(at) == settles_on
        assert market.t1_bid(he0, at) == price_from_rate(5_135, (he0.maturity - settles_on).days)
        assert market.t0_bid(he0, at) == price_from_rate(5_135, 363)


def test_all_prices_of_a_matured_bill_are_par(flat_market, he0):
    market = flat_market(5_135, he0)
    matured = et_instant(he0.maturity, 0)

    assert market.price_at(he0, matured - timedelta(microseconds=1)) in {PAR - 1, PAR}
    assert market.price_at(he0, matured) == PAR
    for at in (matured, et_instant(he0.maturity, 9), matured + timedelta(days=400)):
        assert market.price_at(he0, at) == market.mark(he0, at) == PAR
        assert market.t0_bid(he0, at) == market.t1_bid(he0, at) == market.ask(he0, at) == PAR


def test_the_day_before_maturity_sells_next_day_at_par(flat_market, he0):
    market = flat_market(5_135, he0)
    last = noon(date(2024, 10, 30))

    assert market.t0_bid(he0, last) == price_from_rate(5_135, 1)
    assert market.t1_bid(he0, last) == PAR


def test_the_price_starts_at_the_midnight_bid_and_accretes_to_par(flat_market, he0):
    market = flat_market(5_135, he0)
    opened = et_instant(date(2023, 11, 2), 8)

    # A third of the first of 364 days has passed at 08:00.
    discount = PAR - 94_807_944
    assert PAR - market.price_at(he0, opened) == round(discount * (364 - 1 / 3) / 364)
    rising = [market.price_at(he0, opened + timedelta(hours=n)) for n in range(0, 24 * 364, 7)]
    assert rising == sorted(rising)


def test_a_price_between_two_micros_is_rounded_up(flat_market, he0):
    market = flat_market(4_215, he0)

    # Two days at 4.215 % cost 23,416.67 micros: 99.976583, a discount of 23,417. Half of it is
    # left a day before maturity: 99.9882915.
    assert market.t0_bid(he0, noon(date(2024, 10, 29))) == 99_976_583
    assert market.price_at(he0, et_instant(date(2024, 10, 30), 0)) == 99_988_292


def test_the_mark_is_constant_between_ticks_and_overnight(flat_market, he0):
    market = flat_market(5_135, he0)
    day = date(2023, 11, 2)
    at = et_instant(day, 12) + timedelta(seconds=31)

    assert market.tick_at(at) == et_instant(day, 12)
    assert market.mark(he0, at) == market.price_at(he0, et_instant(day, 12))
    closing = market.price_at(he0, et_instant(day, 17))
    assert market.mark(he0, et_instant(day, 23)) == closing
    assert market.mark(he0, et_instant(date(2023, 11, 3), 7)) == closing


def test_a_strike_is_cached_until_the_next_tick(market):
    bill = market.on_the_run(13, MONDAY)
    at = noon(MONDAY)

    tick_prices = market.tick_prices(at)
    assert market.tick_prices(at + timedelta(seconds=59)) is tick_prices
    assert market.tick_prices(at + timedelta(seconds=60)) is not tick_prices
    bill_prices = tick_prices[bill.cusip]
    assert tick_prices[bill.cusip] is bill_prices
    assert bill_prices.bill is bill
    assert bill_prices.mark_micros == market.mark(bill, at)
    assert bill_prices.t0_bid_micros == market.t0_bid(bill, at)
    assert bill_prices.t1_bid_micros == market.t1_bid(bill, at)
    assert bill_prices.seconds_left == (et_instant(bill.maturity, 0) - at).total_seconds()


def test_the_yield_is_the_investment_rate_of_the_daily_bid(flat_market, he0):
    market = flat_market(5_135, he0)

    for hour in (9, 16):
        bill_prices = market.tick_prices(et_instant(date(2023, 11, 2), hour))[he0.cusip]
        assert bill_prices.yield_to_maturity == "0.05433"
    matured = market.tick_prices(et_instant(he0.maturity, 10))[he0.cusip]
    assert matured.yield_to_maturity == "0.00000"
    assert matured.seconds_left == 0


def test_market_caches_are_cleared_when_full(flat_market, he0, monkeypatch):
    monkeypatch.setattr("billfold.bills.rules.market._CACHE_MAX", 2)
    market = flat_market(5_135, he0)
    first = datetime(2023, 11, 2, 16, tzinfo=UTC)

    for minute in range(200):
        bill_prices = market.tick_prices(first + timedelta(minutes=minute))[he0.cusip]
        assert bill_prices.t0_bid_micros == 94_807_944
    for day in range(5):
        assert market.bid_rate(he0, MONDAY + timedelta(days=day)) == 5_135
