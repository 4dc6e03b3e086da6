"""What the operator does with the bank's own money: suspense, custody, credits."""

from uuid import UUID

import pytest
from tests.payments.cli_bank import prepare
from tests.support.small_rails import OURS, Customer

from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids

__all__ = ["prepare"]
ITEMS = [UUID(f"7c0de000-0000-4000-8000-00000000000{n}") for n in range(2)]


@pytest.fixture
def house(billfold, prepare):
    """Two held payments, and a Pocket: (run a command, the Pocket, its numbers)."""

    async def live(bank):
        anna = Customer(bank, "Anna")
        await anna.settle_in(1_000_00)
        held = [
            UnclaimedPayment(item_id, Direction.CREDIT, 100_00 + nth, reason="NO_ACCOUNT", details={"description": "x"})
            for nth, item_id in enumerate(ITEMS)
        ]
        await hold_unclaimed_payments(bank, held, rail=Rail.WIRE)
        return anna.pocket, (OURS, anna.account)

    pocket_id, numbers = prepare(live)
    return (lambda *words: billfold(*(str(word) for word in words))), pocket_id, numbers


def test_a_suspense_item_is_listed_returned_and_assigned_to_its_owner(house):
    billfold, _, numbers = house
    status, said = billfold("suspense", "list")
    assert status == 0
    assert "$100.01" in said
    assert billfold("suspense", "return", ITEMS[0]) == (0, "✓ $100.00 go back by WIRE.")
    assert billfold("suspense", "assign", ITEMS[1], *numbers) == (0, "✓ $100.01 are in the Pocket.")
    assert billfold("suspense", "list") == (0, "✓ Suspense is empty.")
    status, said = billfold("suspense", "assign", ITEMS[0], *numbers)
    assert status == 1
    assert "RETURNED already" in said
    assert billfold("suspense", "return", ids.new())[0] == 1
    assert billfold("suspense", "assign", ITEMS[0], numbers[0], "800000000000")[0] == 1
    status, said = billfold("clearing", "--payments")
    assert status == 0, said
    assert "Every clearing account is explained to zero." in said
    assert "$1,000.00" in said
    assert billfold("verify")[0] == 0


def test_bills_come_from_another_custodian_and_go_to_one(house):
    billfold, pocket, _ = house
    where = ("912797PT8", 10)
    since = ("--acquired-on", "2025-05-29", "--cost", 99_000)
    status, said = billfold("custody", "receive", pocket, *where, "--from", "Harbor", "--account", 1, *since)
    assert (status, "10 bills worth" in said) == (0, True), said
    status, said = billfold("custody", "deliver", pocket, *where, "--to", "Harbor", "--account", 1)
    assert status == 1
    assert "settle on" in said  # what the deposit bought has not settled
    assert billfold("custody", "receive", ids.new(), *where, "--from", "x", "--account", 1)[0] == 1
    status, said = billfold("custody", "list")
    assert (status, "COMPLETED" in said) == (0, True)
    assert billfold("verify")[0] == 0


def test_credits_and_adjustments_are_booked_and_reversed(house):
    billfold, pocket, _ = house
    status, said = billfold("adjustment", "create", pocket, 2500, "--description", "Welcome")
    assert status == 0, said
    given = said.rsplit(" ", 1)[1].rstrip(".")
    why = ("--description", "a mistake")
    assert billfold("adjustment", "reverse", pocket, given, *why)[0] == 0
    first = billfold("adjustment", "reverse", pocket, given, *why)
    assert first[0] == 0  # asked again under the same key: the same answer
    assert billfold("adjustment", "post", pocket, 1000, "--debit", *why)[0] == 0
    status, said = billfold("adjustment", "post", pocket, 999_999_999, "--debit", *why)
    assert status == 1
    assert "insufficient-funds" in said
    assert billfold("adjustment", "create", ids.new(), 2500, *why)[0] == 1
    assert billfold("verify")[0] == 0
