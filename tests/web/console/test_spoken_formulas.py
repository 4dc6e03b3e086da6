"""Formulas in words."""

import pytest

from billfold.web.console.spoken_formulas import spoken

LABELS = {
    "C": ["Cash"],
    "V": ["Value of A", "Value of B"],
    "F": ["Fee"],
    "B": ["Bid"],
    "M": ["Maturity"],
    "S": ["Settlement"],
}


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("C + sum(V)", "cash plus the sum of the 2 values"),
        ("sum(F) - sum(X)", "fee minus nothing"),
        ("max(0, C - F)", "cash minus fee, but not below zero"),
        ("C - (F - B)", "cash minus (fee minus bid)"),
        (
            "round(100 - B * max(0, M - S) / 360, 6)",
            "100 minus (bid times (maturity minus settlement, but not below zero) divided by 360)",
        ),
        ("0.005 * round(B / 0.005)", "0.005 times (bid divided by 0.005, rounded)"),
        ("-1 * sqrt(B)", "-1 times the square root of bid"),
    ],
)
def test_a_formula_is_said_with_the_labels_of_its_values(formula, words):
    assert spoken(formula, LABELS) == words
