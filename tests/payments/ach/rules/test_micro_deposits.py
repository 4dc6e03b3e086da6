"""The house pays the two credits by which an account is verified."""

from tests.architecture.movements_of_ach import micro_deposits_leave


def test_the_bank_pays_two_micro_deposits():
    moved = micro_deposits_leave()
    assert moved.legs == ["promotions>rail:ach"] * 2
