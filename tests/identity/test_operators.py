"""Two operators are two people, and not two names."""

from uuid import UUID

import pytest

from billfold.identity.operators import Operator

ANNA, BEN = (f"Anna ({UUID(int=n)})" for n in (1, 2))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("anna", "ANNA ", True),
        ("anna", "ben", False),
        (Operator.of_account("anna", "root"), Operator.of_account("ben", "root"), True),
        (Operator.of_account("anna, account x", "root"), Operator.of_account("ben", "root"), True),
        (Operator.of_account("anna", "anna"), Operator.of_account("anna", "ben"), False),
        (Operator.of_account("anna", "root"), "ben", True),
        (ANNA, BEN, False),
        (ANNA, ANNA.replace("Anna", "Ann"), True),
        (ANNA, Operator.of_account("anna", "root"), False),
    ],
)
def test_operators_are_compared_by_account_and_not_by_chosen_name(one, other, same):
    assert Operator.are_same(one, other) is same
    assert Operator.are_same(other, one) is same
