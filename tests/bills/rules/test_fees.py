"""The fee on assets, to the last fraction."""

from datetime import date

import pytest

from billfold.bills.rules.fees import (
    ACCRUED_UNITS_PER_CENT,
    accrue_days,
    accrue_fee,
    fee_charge_date,
    split_accrued_fee,
)
from billfold.platform.money import cents_for


def test_a_year_of_daily_accruals_charges_exactly_the_rate():
    accrued = sum(accrue_fee(1_000_000_00, 25, 1) for _ in range(365))

    assert split_accrued_fee(accrued) == (2_500_00, 0)


def test_the_charged_fee_and_the_remainder_equal_the_accrued_fee():
    accrued = accrue_fee(123_456_78, 25, 3)
    cents, rest = split_accrued_fee(accrued)

    assert cents == 253
    assert cents * ACCRUED_UNITS_PER_CENT + rest == accrued == 12_345_678 * 25 * 3
    assert split_accrued_fee(rest) == (0, rest)


def test_no_fee_accrues_on_a_negative_value():
    assert accrue_fee(-5, 25, 30) == 0


@pytest.mark.parametrize(
    ("day", "charged_on"),
    [
        (date(2025, 6, 2), date(2025, 7, 1)),
        (date(2025, 1, 31), date(2025, 2, 3)),
        (date(2025, 12, 1), date(2026, 1, 2)),
        (date(2024, 2, 29), date(2024, 3, 1)),
        (date(2025, 8, 15), date(2025, 9, 2)),
    ],
)
def test_the_fee_of_a_month_is_charged_on_the_first_business_day_of_the_next_month(calendars, day, charged_on):
    assert fee_charge_date(day, calendars) == charged_on


@pytest.mark.parametrize(("through", "days"), [(6, (6,)), (9, (6, 6, 6, 9)), (10, (6, 6, 6, 9, 10)), (5, ())])
def test_daily_fees_accrue_at_the_last_closing_mark(market, through, days):
    cusip = market.on_the_run(4, date(2025, 6, 5)).cusip
    worth = [12_34 + cents_for(1_000, market.closing_mark(cusip, date(2025, 6, day))) for day in days]

    accrued = accrue_days(
        [(cusip, 1_000)], 12_34, after=date(2025, 6, 5), through=date(2025, 6, through), market=market, bps=25
    )

    assert accrued == sum(value * 25 for value in worth)
    assert len(set(worth)) == len(set(days)), "each close has its own mark"
