"""Prices and rates against the Treasury's own figures."""

import csv
import json
from datetime import date
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from billfold.bills.rules import pricing, yields

VECTORS = json.loads(Path(__file__).with_name("tbill_vectors.json").read_text(encoding="utf-8"))
PAR = 100_000_000


def micros(price: str) -> int:
    return int(Decimal(price).scaleb(6))


def milli(rate: str) -> int:
    return int(Decimal(rate).scaleb(3))


@pytest.mark.parametrize("auction", VECTORS["auctions"], ids=lambda row: f"{row['term']}-{row['issue']}")
def test_price_and_rates_match_the_published_auction_results(auction):
    issue, maturity = date.fromisoformat(auction["issue"]), date.fromisoformat(auction["maturity"])
    days = (maturity - issue).days
    price = micros(auction["price_per_100"])

    assert days == auction["days"]
    assert (yields.year_after(issue) - issue).days == auction["year_basis"]
    assert pricing.price_from_rate(milli(auction["discount_rate"]), days) == price
    assert pricing.rate_from_price(price, days) == milli(auction["discount_rate"])
    rate = yields.investment_rate(price, issue, maturity)
    assert str(rate) == auction["investment_rate"]


@pytest.mark.parametrize("quoted", VECTORS["fedinvest"], ids=lambda row: row["cusip"])
def test_secondary_prices_are_whole_ticks_when_counted_from_the_price_date(quoted):
    days = (date.fromisoformat(quoted["maturity"]) - date.fromisoformat(quoted["price_date"])).days
    for price in (micros(quoted["buy"]), micros(quoted["sell"])):
        rate = pricing.rate_from_price(price, days)

        assert rate % pricing.RATE_TICK_MILLI == 0
        assert pricing.price_from_rate(rate, days) == price
    assert pricing.rate_from_price(micros(quoted["buy"]), days) <= pricing.rate_from_price(micros(quoted["sell"]), days)


def test_every_packaged_auction_result_is_reproduced():
    path = files("billfold.bills") / "data" / "bill_auctions.csv"
    priced = [row for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()) if row["price_per100"]]

    assert len(priced) == 2392
    for row in priced:
        issue, maturity = (date.fromisoformat(row[key]) for key in ("issue_date", "maturity_date"))
        price = pricing.price_from_rate(milli(row["high_discnt_rate"]), (maturity - issue).days)
        assert price == micros(row["price_per100"]), row
        investment = yields.investment_rate(price, issue, maturity)
        assert investment == Decimal(row["high_investment_rate"]), row


def test_a_year_from_february_29_ends_on_february_28():
    assert yields.year_after(date(2024, 2, 29)) == date(2025, 2, 28)
    assert yields.year_after(date(2023, 2, 28)) == date(2024, 2, 28)
    assert yields.year_after(date(2023, 3, 1)) == date(2024, 3, 1)


def test_183_days_are_simple_interest_and_184_are_not():
    settles = date(2025, 1, 2)
    simple = Decimal(PAR - 97_500_000) * 365 / (Decimal(97_500_000) * 183) * 100

    assert yields.investment_rate(97_500_000, settles, date(2025, 7, 4)) == round(simple, 3)
    # 97.5 * (1 + 1.5/365 * 5.085 %) * (1 + 5.085 %/2) is 100; simple interest would say 5.086.
    assert yields.investment_rate(97_500_000, settles, date(2025, 7, 5)) == Decimal("5.085")


@pytest.mark.parametrize("days", [0, -1])
def test_a_bill_with_no_days_left_is_at_par_with_zero_yield(days):
    maturity = date(2025, 6, 3)

    assert pricing.price_from_rate(4_200, days) == PAR
    assert yields.investment_rate(PAR, date(2025, 6, 3 - days), maturity) == Decimal("0.000")
    with pytest.raises(ValueError, match="at least one day"):
        pricing.rate_from_price(PAR, days)


def test_the_last_day_still_has_a_rate():
    assert pricing.rate_from_price(pricing.price_from_rate(4_200, 1), 1) == 4_200


def test_constant_discount_accretes_on_a_straight_line():
    issued = micros("94.807944")

    # At half time exactly half of the discount is earned.
    assert PAR - (PAR - issued) * 182 // 364 == micros("97.403972")


@pytest.mark.parametrize(
    ("days", "rate"),
    [
        (0, 4_000),
        (28, 4_000),
        (35, 4_050),
        (29, 4_005),
        (41, 4_095),
        (42, 4_100),
        (66, 4_050),
        (91, 4_000),
        (365, 4_000),
    ],
)
def test_a_rate_between_two_terms_is_interpolated_and_rounded_to_the_tick(days, rate):
    assert pricing.interpolated_rate([(28, 4_000), (42, 4_100), (91, 4_000)], days) == rate


def test_a_rate_halfway_between_two_ticks_is_rounded_up():
    assert pricing.interpolated_rate([(10, 1_000), (12, 1_005)], 11) == 1_005
    assert pricing.interpolated_rate([(10, 1_002)], 10) == 1_000
    assert pricing.interpolated_rate([(10, 1_003)], 99) == 1_005


def test_a_price_less_its_spread_is_rounded_half_up():
    assert pricing.subtract_spread(99_588_556, 0) == 99_588_556
    assert pricing.subtract_spread(99_588_556, 5) == 99_588_556 - 49_794
