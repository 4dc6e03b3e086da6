"""The weekday rule against eight years of real auctions."""

from datetime import date, timedelta

from billfold.bills import market_data
from billfold.bills.rules.issue_calendar import TERMS, latest_maturity, simulated_bill
from billfold.platform.calendars import Calendars, DayOverride

# Until here 4-week bills were issued on Thursdays.
TUESDAYS_SINCE = date(2018, 12, 11)


def test_the_issue_calendar_matches_every_real_issue_and_maturity(calendars):
    regular = [row for row in market_data.auctions() if row.weeks in TERMS and row.issue_date >= TUESDAYS_SINCE]

    assert len(regular) == 1303
    for row in regular:
        term = TERMS[row.weeks or 0]
        assert latest_maturity(term, row.issue_date, calendars) == row.maturity, row
        day_before = row.issue_date - timedelta(days=1)
        assert latest_maturity(term, day_before, calendars) < row.maturity, row


def test_a_simulated_bill_has_the_first_issue_of_the_real_bill_of_its_maturity(calendars):
    long_bills = [
        bill
        for bill in market_data.securities()
        if bill.original_term in {"26-Week", "52-Week"} and bill.first_issue >= TUESDAYS_SINCE
    ]

    assert len(long_bills) > 300
    for real in long_bills:
        simulated = simulated_bill(real.maturity, calendars)
        assert simulated.first_issue == real.first_issue
        assert simulated.original_term == real.original_term


def test_a_maturity_on_a_holiday_moves_to_the_next_business_day(calendars):
    # The Thursday thirteen weeks after 2026-08-27 is Thanksgiving.
    assert latest_maturity(TERMS[13], date(2026, 8, 27), calendars) == date(2026, 11, 27)
    bill = simulated_bill(date(2026, 11, 27), calendars)
    assert (bill.original_term, bill.first_issue) == ("52-Week", date(2025, 11, 28))


def test_an_issue_on_a_holiday_tuesday_is_postponed(calendars):
    # Tuesday 2030-01-01 is a holiday: until Wednesday the bill of the week before is the newest.
    assert latest_maturity(TERMS[4], date(2030, 1, 1), calendars) == date(2030, 1, 22)
    assert latest_maturity(TERMS[4], date(2030, 1, 2), calendars) == date(2030, 1, 29)


def test_a_simulated_bill_is_unchanged_when_its_maturity_becomes_a_holiday():
    maturity = date(2027, 3, 11)
    closed = Calendars({maturity: DayOverride(fed_open=False, bond_open=False)})

    assert simulated_bill(maturity, closed) == simulated_bill(maturity, Calendars())


def test_a_four_week_bill_matures_on_tuesday_or_on_wednesday_after_a_holiday(calendars):
    assert simulated_bill(date(2027, 3, 9), calendars).original_term == "4-Week"
    assert simulated_bill(date(2030, 1, 2), calendars).first_issue == date(2029, 12, 4)
    assert TERMS[4].label == "4-Week"
