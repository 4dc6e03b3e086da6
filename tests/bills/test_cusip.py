"""Numbers of bills, real and simulated."""

from datetime import date, timedelta

import pytest

from billfold.bills import types


@pytest.mark.parametrize("cusip", ["912797UZ8", "912797PE1", "912796ZN2", "912797HE0", "912797VS3"])
def test_a_real_bill_has_a_valid_check_digit(cusip):
    assert types.is_valid_cusip(cusip)


@pytest.mark.parametrize("cusip", ["912797PE2", "912797uz8", "912797UZ", "912797UZ81", " 912797UZ8", ""])
def test_a_cusip_with_one_wrong_character_is_refused(cusip):
    assert not types.is_valid_cusip(cusip)


def test_the_isin_is_the_cusip_between_country_and_luhn_digit():
    assert types.isin_of("912797UZ8") == "US912797UZ81"


def test_a_simulated_cusip_encodes_one_maturity():
    first = date(2016, 1, 1)
    days = [first + timedelta(days=n) for n in range(40 * 365)]
    numbers = [types.simulated_cusip(day) for day in days]

    assert len(set(numbers)) == len(days)
    for day, number in zip(days, numbers, strict=True):
        assert types.is_valid_cusip(number)
        assert types.is_simulated_cusip(number)
        assert not number.startswith("912")
        assert types.simulated_maturity(number) == day


@pytest.mark.parametrize("cusip", ["912797UZ8", "SIM26B190", "SIM", "SIMXXXXX0"])
def test_a_real_cusip_has_no_simulated_maturity(cusip):
    assert types.simulated_maturity(cusip) is None


def test_a_simulated_cusip_with_an_invalid_date_has_no_maturity():
    with_check_digit = next(f"SIM26299{digit}" for digit in range(10) if types.is_valid_cusip(f"SIM26299{digit}"))

    assert types.simulated_maturity(with_check_digit) is None


@pytest.mark.parametrize("day", [date(1999, 12, 31), date(2100, 1, 1)])
def test_a_simulated_cusip_for_a_year_outside_two_digits_is_refused(day):
    with pytest.raises(ValueError, match="2000 to 2099"):
        types.simulated_cusip(day)
