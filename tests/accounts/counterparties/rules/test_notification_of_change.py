"""The 29 characters of corrected data in a notification of change, by change code."""

import pytest

from billfold.accounts.counterparties.rules.notification_of_change import (
    CHANGE_CODES,
    CORRECTING_CODES,
    Correction,
    correction_of,
)

SAID = {
    "C01": ("1918171614", Correction(account_number="1918171614")),
    "C02": ("121042882", Correction(routing_number="121042882")),
    "C03": ("121042882   1918171614", Correction(routing_number="121042882", account_number="1918171614")),
    "C05": ("32", Correction(transaction_code="32")),
    "C06": ("1918171614".ljust(20) + "32", Correction(account_number="1918171614", transaction_code="32")),
    "C07": (
        "121042882" + "1918171614".ljust(17) + "22",
        Correction(routing_number="121042882", account_number="1918171614", transaction_code="22"),
    ),
    "C09": ("21345678", Correction(identification="21345678")),
}


def test_every_change_code_has_a_test_case():
    assert SAID.keys() == CORRECTING_CODES


@pytest.mark.parametrize("code", SAID)
def test_a_notification_of_change_is_parsed_into_its_correction(code):
    text, correction = SAID[code]

    assert correction_of(code, text) == correction


@pytest.mark.parametrize(
    ("code", "text", "correction"),
    [
        ("C03", "121042882", Correction(routing_number="121042882")),
        ("C03", "            1918171614", Correction(account_number="1918171614")),
        ("C06", " " * 20 + "37", Correction(transaction_code="37")),
        ("C06", "730055 119".ljust(20) + "32", Correction(account_number="730055 119", transaction_code="32")),
        ("C07", "000000000" + "1918171614".ljust(17), Correction(account_number="1918171614")),
    ],
)
def test_a_notification_of_change_with_blank_fields_corrects_only_the_filled_fields(code, text, correction):
    assert correction_of(code, text) == correction


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("C01", ""),
        ("C01", "?????"),
        ("C02", "121042883"),
        ("C03", "1210428821918171614"),
        ("C03", "121042883   1918171614"),
        ("C05", "99"),
        ("C06", "1918171614".ljust(17) + "32"),
        *((code, "anything") for code in sorted(CHANGE_CODES - CORRECTING_CODES)),
    ],
)
def test_a_notification_of_change_with_an_invalid_field_corrects_nothing(code, text):
    assert correction_of(code, text) == Correction()
