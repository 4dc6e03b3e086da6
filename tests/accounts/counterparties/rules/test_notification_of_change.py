"""What the 29 characters of a notification of change say under each code."""

import pytest

from billfold.accounts.counterparties.rules.notification_of_change import CHANGE_CODES, Correction, correction_of

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


def test_every_code_is_tried():
    assert SAID.keys() == CHANGE_CODES


@pytest.mark.parametrize("code", SAID)
def test_the_correction_is_read(code):
    text, correction = SAID[code]

    assert correction_of(code, text) == correction


@pytest.mark.parametrize(
    ("code", "text", "told"),
    [
        ("C01", "", "no account number"),
        ("C02", "121042883", "no routing number"),
        ("C03", "121042882", "no account number"),
        ("C05", "99", "no transaction code"),
        ("C13", "anything", "no code of a change"),
    ],
)
def test_what_corrects_nothing_is_refused(code, text, told):
    with pytest.raises(ValueError, match=told):
        correction_of(code, text)
