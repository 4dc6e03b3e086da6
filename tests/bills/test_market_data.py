"""The packaged market data is complete and consistent."""

from datetime import date

from billfold.bills import market_data
from billfold.bills.types import is_valid_cusip


def test_every_business_day_has_rates_without_a_gap():
    rates = market_data.rates()

    assert len(rates) == 902
    assert (rates[0].day, rates[-1].day) == (date(2023, 1, 3), date(2026, 8, 11))
    assert all({quote.weeks for quote in row.quotes} >= {4, 8, 13, 17, 26, 52} for row in rates)
    assert all(quote.coupon_milli > quote.discount_milli for row in rates for quote in row.quotes)
    first = rates[0].quotes[0]
    assert (first.weeks, first.discount_milli, first.coupon_milli) == (4, 3_960, 4_030)


def test_bundled_auctions_of_both_files_are_loaded_once():
    auctions = market_data.auctions()

    assert len(auctions) == 2_393 + 216
    assert len({(row.cusip, row.issue_date) for row in auctions}) == len(auctions)
    assert sum(row.price_micros is not None for row in auctions) == 2_392
    assert {row.basis for row in auctions} == {"published", "derived", "none"}


def test_every_bundled_bill_is_unique_with_its_first_known_issue():
    bills = market_data.securities()

    assert len({bill.cusip for bill in bills}) == len(bills)
    assert len({bill.maturity for bill in bills}) == len(bills)
    assert all(is_valid_cusip(bill.cusip) and not bill.simulated for bill in bills)
    chained = next(bill for bill in bills if bill.cusip == "912797UZ8")
    assert chained.original_term == "26-Week"
    assert chained.first_issue == date(2026, 5, 21)
    assert chained.isin == "US912797UZ81"
    assert chained.description == "US T-Bill"
