"""What the operator does with the house's own: suspense, clearing, credits."""

import os
from uuid import UUID

import pytest
from tests.support.whole_bank import Holder

from billfold.access.partners.customers import create_partner_customers
from billfold.accounts.commands import OpenPocket
from billfold.cli.app import run
from billfold.cli.resources import run_with_bank
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.commands import HoldInSuspense
from billfold.platform import ids
from billfold.wiring.cli_context import Wiring

ITEMS = [UUID(f"7c0de000-0000-4000-8000-00000000000{n}") for n in range(2)]
ROUTING = "SELECT routing_number, account_number FROM portal WHERE portal_id = $1"


@pytest.fixture
def house(market_dsn, tmp_path, capsys):
    """Two payments nobody has asked for, and a Pocket: (run a command, the Pocket, its numbers)."""
    wiring = Wiring(
        {
            "BILLFOLD_DATABASE_URL": market_dsn,
            "BILLFOLD_STATE_DIR": str(tmp_path),
            "BILLFOLD_SEED": "a seed of the house",
            "BILLFOLD_LOG_LEVEL": "ERROR",
            "PATH": os.environ["PATH"],
        }
    )

    def call(*words):
        status = run(wiring, arguments=[str(word) for word in words])
        captured = capsys.readouterr()
        return status, " ".join((captured.out + captured.err).split())

    assert call("migrate", "up")[0] == 0
    pocket_id, numbers = run_with_bank(wiring, lived)
    return call, pocket_id, numbers


async def lived(bank):
    places = await create_partner_customers(bank, "acme", "Acme")
    opened = (
        await bank.engine.submit(
            OpenPocket(
                caller="test",
                key=ids.new(),
                customers=(places.sandbox_customer_id,),
                partner_id=places.partner_id,
                name="Reserve",
                deposit_weeks=4,
                reinvestment_weeks=4,
            )
        )
    ).outcome
    pocket_id, portal_id = UUID(opened["pocket_id"]), UUID(opened["portal_id"])
    await Holder(bank, places.sandbox_customer_id, pocket_id, portal_id=portal_id).deposit(1_000_00)
    for nth, item_id in enumerate(ITEMS):
        await bank.engine.submit(
            HoldInSuspense(
                caller="test",
                key=item_id,
                customers=(bank_customer_id(bank.seed),),
                item_id=item_id,
                rail=Rail.WIRE,
                direction=Direction.CREDIT,
                amount=100_00 + nth,
                reason="NO_ACCOUNT",
                details={"description": "an invoice"},
            )
        )
    return pocket_id, tuple(await bank.pool.fetchrow(ROUTING, portal_id))


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
    status, said = billfold(
        "custody",
        "receive",
        pocket,
        *where,
        "--from",
        "Harbor",
        "--account",
        1,
        "--acquired-on",
        "2025-05-29",
        "--cost",
        99_000,
    )
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
