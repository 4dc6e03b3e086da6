"""The Treasury's files, and the errors of malformed ones."""

from datetime import date

import pytest

from billfold.bills.market_data import parse_auctions, parse_daily_rates
from billfold.platform.errors import InvalidInput

AUCTION_HEADER = (
    "cusip,security_type,security_term,cash_management_bill_cmb,reopening,announcemt_date,"
    "auction_date,issue_date,maturity_date,high_discnt_rate,high_investment_rate,price_per100\n"
)
UZ8 = "912797UZ8,Bill,26-Week,No,No,2026-05-14,2026-05-18,2026-05-21,2026-11-19,3.615000,3.733000,98.172417\n"


def mistakes_of(caught: pytest.ExceptionInfo[InvalidInput]) -> list[tuple[object, ...]]:
    return [mistake.loc for mistake in caught.value.errors]


def test_rates_are_parsed_with_the_column_names_and_dates_of_the_treasury():
    text = (
        "\ufeffDate,4 WEEKS BANK DISCOUNT,4 WEEKS COUPON EQUIVALENT,52 WEEKS BANK DISCOUNT,"
        "52 WEEKS COUPON EQUIVALENT,EXTRA\r\n"
        "06/03/2025,4.21,4.29,3.97,4.13,x\r\n"
        "\r\n"
        "06/02/2025,4.205,4.29,N/A,,\r\n"
    )

    older, newer = parse_daily_rates(text)

    assert older.day == date(2025, 6, 2)
    assert [(quote.weeks, quote.discount_milli) for quote in older.quotes] == [(4, 4_205)]
    assert newer.day == date(2025, 6, 3)
    assert [(quote.weeks, quote.coupon_milli) for quote in newer.quotes] == [(4, 4_290), (52, 4_130)]


def test_every_error_in_a_rate_file_is_reported_with_line_and_column():
    text = (
        "Date,4 WEEKS BANK DISCOUNT,4 WEEKS COUPON EQUIVALENT\n"
        "2025-06-31,4.21,4.29\n"
        "2025-06-02,4.2x,4.29\n"
        "2025-06-03,4.21,\n"
        "2025-06-04,,\n"
        "2025-06-05,4.2105,4.29\n"
        "2025-06-06,4.21\n"
        "2025-06-09,4.21,4.29\n"
        "06/09/2025,4.21,4.29\n"
        "2025-06-10,inf,4.29\n"
        ",4.21,4.29\n"
        "2025-06-11,421,429\n"
        "2025-06-12,4.29,4.21\n"
        "2025-06-14,4.21,4.29\n"
    )

    with pytest.raises(InvalidInput) as caught:
        parse_daily_rates(text)

    found = mistakes_of(caught)
    discount, coupon = "4 WEEKS BANK DISCOUNT", "4 WEEKS COUPON EQUIVALENT"
    for expected in [
        ("line", 2, "Date"),
        ("line", 3, discount),
        ("line", 4, coupon),
        ("line", 5, "Date"),
        ("line", 6, discount),
        ("line", 7, coupon),
        ("line", 9, "Date"),
        ("line", 10, discount),
        ("line", 11, "Date"),
        *(("line", 12, column) for column in (discount, coupon)),
        ("line", 13, coupon),
        ("line", 14, "Date"),
    ]:
        assert expected in found
    assert "repeats line 8" in [mistake.msg for mistake in caught.value.errors]
    assert "must not be empty" in [mistake.msg for mistake in caught.value.errors]
    assert "line.2.Date" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "Day,4 WEEKS BANK DISCOUNT\n", "Date,Rate\n", "Date,4 WEEKS BANK DISCOUNT,Date\n"]
)
def test_a_rate_file_with_a_wrong_header_is_refused(text):
    with pytest.raises(InvalidInput) as caught:
        parse_daily_rates(text)

    assert mistakes_of(caught)[0][:2] == ("line", 1)


def test_bill_auctions_are_parsed_and_those_of_other_securities_skipped():
    note = "91282CAA1,Note,2-Year,No,No,x,x,x,x,x,x,x\n"
    unpriced = "912797VS3,Bill,13-Week,No,Yes,null,2026-10-05,2026-10-08,2027-01-07,null,null,null\n"

    first, second = parse_auctions(AUCTION_HEADER + note + UZ8 + unpriced)

    assert (first.cusip, first.term, first.weeks) == ("912797UZ8", "26-Week", 26)
    assert (first.high_rate_milli, first.investment_milli) == (3_615, 3_733)
    assert (first.price_micros, first.basis) == (98_172_417, "published")
    assert (first.announced_on, first.reopening) == (date(2026, 5, 14), False)
    assert (second.price_micros, second.basis, second.announced_on) == (None, "none", None)
    assert second.reopening


@pytest.mark.parametrize(
    ("before", "after", "column"),
    [
        ("912797UZ8", "912797UZ7", "cusip"),
        ("912797UZ8", "", "cusip"),
        ("26-Week", "26 weeks", "security_term"),
        ("2026-05-18", "18.05.2026", "auction_date"),
        ("2026-11-19", "2026-05-21", "maturity_date"),
        (",No,No,", ",Maybe,No,", "cash_management_bill_cmb"),
        ("98.172417", "98.1724171", "price_per100"),
        ("98.172417", "-1", "price_per100"),
    ],
)
def test_an_invalid_auction_cell_is_reported(before, after, column):
    with pytest.raises(InvalidInput) as caught:
        parse_auctions(AUCTION_HEADER + UZ8.replace(before, after, 1))

    assert mistakes_of(caught) == [("line", 2, column)]


def test_a_duplicate_auction_in_a_file_is_refused():
    with pytest.raises(InvalidInput) as caught:
        parse_auctions(AUCTION_HEADER + UZ8 + UZ8)

    assert mistakes_of(caught) == [("line", 3, "cusip")]
    assert caught.value.errors[0].msg == "repeats line 2"


def test_the_rate_basis_column_accepts_only_known_values():
    header = AUCTION_HEADER.strip() + ",high_investment_rate_basis\n"

    assert parse_auctions(header + UZ8.strip() + ",derived\n")[0].basis == "derived"
    with pytest.raises(InvalidInput) as caught:
        parse_auctions(header + UZ8.strip() + ",guessed\n")
    assert mistakes_of(caught) == [("line", 2, "high_investment_rate_basis")]


def test_all_missing_columns_are_reported():
    with pytest.raises(InvalidInput) as caught:
        parse_auctions("cusip,security_term\n")

    assert [loc[-1] for loc in mistakes_of(caught)] == ["auction_date", "issue_date", "maturity_date"]


def test_parsing_an_auction_file_stops_after_fifty_errors():
    with pytest.raises(InvalidInput) as caught:
        parse_auctions(AUCTION_HEADER + UZ8.replace("UZ8", "UZ7") * 1_000)

    assert len(caught.value.errors) == 50
