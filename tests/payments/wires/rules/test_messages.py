"""Payees in messages: account, address, and texts cut to the lengths of Fedwire."""

import pytest

from billfold.payments.wires.rules.messages import address_of, with_payee

LONG = "x" * 200
TERMS = {"creditor": {"name": "Beta LLC"}, "amount": 1, "payee": {}}


@pytest.mark.parametrize(
    ("payee", "said"),
    [
        ({}, {}),
        ({"identifier": "56 4777-2655"}, {"creditor_account": {"number": "564777-2655"}}),
        ({"identifier": "9" * 35}, {"creditor_account": {"number": "9" * 34}}),
        (
            {"identifier": "de89 3704 0044 0532 0130 00"},
            {"creditor_account": {"iban": "DE89370400440532013000"}},
        ),
        ({"wire_instructions": LONG}, {"instructions": "x" * 140}),
        (
            {"address": {"city": "Reno", "country": "US"}},
            {"creditor": {"name": "Beta LLC", "address": {"town": "Reno", "country": "US"}}},
        ),
    ],
)
def test_a_payee_is_written_as_elements_without_destroyed_values(payee, said):
    assert with_payee(TERMS, payee) == {"creditor": {"name": "Beta LLC"}, "amount": 1} | said


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (None, None),
        ({"city": "Reno"}, None),
        ({"country": "US"}, None),
        (
            dict.fromkeys(("street_address", "city", "postal_code", "state", "country"), LONG),
            {"street": 70, "post_code": 16, "town": 35, "subdivision": 35, "country": 200},
        ),
    ],
)
def test_an_address_needs_town_and_country_and_is_truncated_to_its_elements(address, said):
    told = address_of(address)
    assert (told and {name: len(value) for name, value in told.items()}) == said
