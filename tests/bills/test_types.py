"""Auctions and their terms."""

from datetime import date

import pytest

from billfold.bills.types import Auction


@pytest.mark.parametrize(
    ("term", "cash_management", "weeks"),
    [("4-Week", False, 4), ("52-Week", False, 52), ("42-Day", True, None), ("6-Week", True, None)],
)
def test_an_auction_has_a_term_in_weeks_only_when_regular(term, *, cash_management, weeks):
    row = Auction(
        cusip="912797UZ8",
        term=term,
        auction_date=date(2026, 5, 18),
        issue_date=date(2026, 5, 21),
        maturity=date(2026, 11, 19),
        cash_management=cash_management,
    )

    assert row.weeks == weeks
