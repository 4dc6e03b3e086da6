"""Operator commands for the bank's own money: suspense, custody, credits."""

import re
from uuid import UUID

import pytest
from tests.payments.cli_bank import prepare
from tests.support.approvals import confirmed, proposed
from tests.support.small_rails import OURS, Customer

from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.rules import NOT_RETURNABLE
from billfold.payments.suspense.worker import UnclaimedPayment, hold_unclaimed_payments
from billfold.platform import ids

__all__ = ["prepare"]
ITEMS = [UUID(f"7c0de000-0000-4000-8000-00000000000{n}") for n in range(2)]


@pytest.fixture
def bank_with_held_payments(billfold, prepare):
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
    return (lambda *words, **more: billfold(*(str(word) for word in words), **more)), pocket_id, numbers


def test_a_suspense_item_is_listed_returned_and_assigned_to_its_owner(bank_with_held_payments):
    billfold, _, numbers = bank_with_held_payments
    status, said = billfold("suspense", "list")
    assert status == 0
    assert "$100.01" in said
    confirmed(billfold, billfold("suspense", "return", ITEMS[0]))
    confirmed(billfold, billfold("suspense", "assign", ITEMS[1], *numbers))
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


def test_debits_without_a_return_message_are_returned_by_hand_or_written_off(founded, billfold, prepare):
    async def hold(bank):
        stays = {NOT_RETURNABLE: "This bank writes no returns of it."}
        debits = [UnclaimedPayment(each, Direction.DEBIT, 100_00, reason="IAT", details=stays) for each in ITEMS]
        await hold_unclaimed_payments(bank, debits)

    prepare(hold)
    returned, lost = map(str, ITEMS)
    status, said = billfold("suspense", "return", returned)
    assert (status, "writes no returns" in said) == (1, True), said
    by_hand = ("--by-hand", "--reason", "Returned as IAT, R03")
    confirmed(billfold, billfold("suspense", "return", returned, *by_hand))
    confirmed(billfold, billfold("suspense", "write-off", lost, "--reason", "Nobody takes it back"))
    said = billfold("suspense", "list", "--all")[1]
    shown = ("RETURNED", "Returned as IAT, R03", "WRITTEN_OFF", "Nobody takes it back")
    assert [each for each in shown if each not in said] == [], said
    assert billfold("verify")[0] == 0


def test_bills_are_received_from_and_delivered_to_an_external_custodian(bank_with_held_payments):
    billfold, pocket, _ = bank_with_held_payments
    where = ("912797PT8", 10)
    since = ("--acquired-on", "2025-05-29", "--cost", 99_000)
    made = billfold("custody", "receive", pocket, *where, "--from", "Harbor", "--account", 47110815, *since)
    assert "Receive 10 bills 912797PT8 from Harbor, the account that ends in 0815, into Pocket" in made[1]
    assert "COMPLETED" not in billfold("custody", "list")[1], "one operator moves nothing"
    said = confirmed(billfold, made)
    assert re.search("APPLIED, transfer [0-9a-f-]{36}", said), said
    status, said = billfold("custody", "deliver", pocket, *where, "--to", "Harbor", "--account", 1)
    assert status == 1
    assert "settle on" in said  # what the deposit bought has not settled
    assert billfold("custody", "receive", ids.new(), *where, "--from", "x", "--account", 1)[0] == 1
    status, said = billfold("custody", "list")
    assert (status, "COMPLETED" in said) == (0, True)
    assert billfold("verify")[0] == 0


def test_credits_and_adjustments_are_booked_and_reversed(bank_with_held_payments, prepare):
    billfold, pocket, _ = bank_with_held_payments
    said = confirmed(billfold, billfold("adjustment", "create", pocket, 2500, "--description", "Welcome"))
    assert f": APPLIED, transaction {prepare(_newest_transaction)}." in said
    given, why = prepare(_newest_transaction), ("--description", "a mistake")
    confirmed(billfold, billfold("adjustment", "reverse", pocket, given, *why))
    status, said = billfold("adjustment", "reverse", pocket, given, *why)
    assert (status, "already-corrected" in said) == (1, True), said
    confirmed(billfold, billfold("adjustment", "post", pocket, 1000, "--debit", *why))
    status, said = billfold("adjustment", "post", pocket, 999_999_999, "--debit", *why)
    assert status == 1
    assert "insufficient-funds" in said
    assert billfold("adjustment", "create", ids.new(), 2500, *why)[0] == 1
    assert billfold("verify")[0] == 0


def test_a_proposed_movement_is_booked_once_when_a_second_operator_confirms_it(bank_with_held_payments, prepare):
    billfold, pocket, numbers = bank_with_held_payments
    key = ("--description", "Welcome", "--key", ids.new())
    for words, moves in (
        (("adjustment", "create", pocket, 2500, *key), "CREDIT"),
        (("suspense", "return", ITEMS[0]), "RETURNED"),
        (("suspense", "assign", ITEMS[1], *numbers), "ASSIGNED"),
    ):
        before = prepare(_moved)
        made = proposed(billfold(*words, BILLFOLD_OPERATOR="olga"))
        assert "proposed" in billfold("proposals", "list")[1].lower()
        status, said = billfold(*words, BILLFOLD_OPERATOR="olga")
        assert (status, "proposal-open" in said) == (1, True), said
        status, said = billfold("proposals", "confirm", made, BILLFOLD_OPERATOR="Olga ")
        assert (status, "same-operator" in said, prepare(_moved)) == (1, True, before), said
        assert billfold("proposals", "confirm", made, BILLFOLD_OPERATOR="otto")[0] == 0
        after = prepare(_moved)
        assert sorted([*before, moves]) == sorted(after)
        status, said = billfold("proposals", "confirm", made, BILLFOLD_OPERATOR="otto")
        assert (status, "proposal-decided" in said, prepare(_moved)) == (1, True, after), said
    status, said = billfold("adjustment", "create", pocket, 9900, *key)
    assert (status, "movement-made" in said) == (1, True), said
    assert billfold("verify")[0] == 0


def test_a_proposal_with_an_open_key_and_a_different_amount_is_refused(bank_with_held_payments, prepare):
    billfold, pocket, _ = bank_with_held_payments
    before, key = prepare(_moved), ("--description", "Welcome", "--key", ids.new())
    made = proposed(billfold("adjustment", "create", pocket, 2500, *key))
    status, said = billfold("adjustment", "create", pocket, 9900, *key)
    assert (status, "proposal-open" in said) == (1, True), said
    assert billfold("proposals", "withdraw", made)[0] == 0
    assert billfold("proposals", "confirm", made, BILLFOLD_OPERATOR="otto")[0] == 1
    assert prepare(_moved) == before
    confirmed(billfold, billfold("adjustment", "create", pocket, 9900, *key))
    assert billfold("verify")[0] == 0


async def _newest_transaction(bank):
    return await bank.pool.fetchval("SELECT transaction_id FROM transaction ORDER BY written_no DESC LIMIT 1")


async def _moved(bank):
    """Return what commands of operators have moved."""
    credited = "SELECT 'CREDIT' FROM command WHERE kind = 'PostGoodwillCredit' AND accepted"
    items = "SELECT status FROM suspense_item WHERE status <> 'HELD'"
    return [row[0] for row in await bank.pool.fetch(f"{credited} UNION ALL {items}")]
