from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.platform import money

_NUMERATORS = st.integers(-(10**24), 10**24)
_DENOMINATORS = st.integers(1, 10**12)


@given(_NUMERATORS, _DENOMINATORS)
def test_round_half_up_equals_the_floor_of_the_value_plus_one_half(numerator, denominator):
    rounded = money.round_half_up(numerator, denominator)

    assert rounded == floor(Fraction(numerator, denominator) + Fraction(1, 2))


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [(5, 10, 1), (-5, 10, 0), (15, 10, 2), (-15, 10, -1), (14, 10, 1), (-16, 10, -2), (0, 7, 0)],
)
def test_round_half_up_rounds_ties_up_on_both_sides_of_zero(numerator, denominator, expected):
    assert money.round_half_up(numerator, denominator) == expected


@pytest.mark.parametrize("denominator", [0, -1])
def test_rounding_with_a_nonpositive_denominator_is_refused(denominator):
    with pytest.raises(ValueError, match="positive"):
        money.round_half_up(1, denominator)


@pytest.mark.parametrize(
    ("units", "price_micros", "cents"),
    [
        (1, 99_588_556, 9_959),
        (13, 99_588_556, 129_465),
        (0, 99_588_556, 0),
        (1, money.PRICE_PAR_MICROS, 10_000),
        (1, 99_995_000, 10_000),
        (1, 99_994_999, 9_999),
    ],
)
def test_a_trade_costs_its_units_times_price_rounded_once(units, price_micros, cents):
    assert money.cents_for(units, price_micros) == cents


@pytest.mark.parametrize(
    ("cents", "text"),
    [(0, "$0.00"), (100_000, "$1,000.00"), (-100, "-$1.00"), (-5, "-$0.05"), (123_456_789_012, "$1,234,567,890.12")],
)
def test_cents_are_formatted_as_dollars(cents, text):
    assert money.format_usd(cents) == text
