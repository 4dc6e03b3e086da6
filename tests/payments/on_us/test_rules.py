"""What may leave a pocket by transfer: liens and the accrued fee stay behind, to the cent.

At the opening instant the ask of the 4-week bill is 99.754125, its mark 99.746507 and its bid for
tomorrow 99.753833 (docs/domain/tbill_maths.md).
"""

from datetime import date

import pytest
from tests.fixtures.teller import Teller

from billfold.payments.on_us.types import TransferOrder
from billfold.platform.dates import et_instant

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")

LIENED = 500_00


@pytest.fixture
def teller():
    """A bank that keeps ACH credits for two days, as in production."""
    return Teller(ach_credit_hold_days=2)


@pytest.fixture
def pocket(teller):
    """15 bills and $3.69: $1,000.00 by wire buy 10 for $997.54, $500.00 by ACH 5 for $498.77."""
    pocket = teller.pocket()
    teller.deposit(pocket, 1_000_00)
    teller.deposit(pocket, LIENED, rail="ACH")
    assert (pocket.positions()[0][1], pocket.cash.balance) == (15, 3_69)
    return pocket


def test_a_full_transfer_leaves_held_money(teller, pocket):
    """15 bills at tomorrow's bid of 99.753833 fetch $1,496.31; with the cash $1,000.00 is free."""
    there = teller.pocket()
    assert teller.move(pocket, there, 1_000_03)["reason"] == "INSUFFICIENT_FUNDS"
    assert teller.move(pocket, there, None)["reason"] == "INSUFFICIENT_FUNDS"
    assert teller.move(pocket, there, 1_000_00)["status"] == "COMPLETED"
    assert pocket.outflow == 1_000_00


def test_a_lien_ends_at_half_past_eight_on_the_second_banking_day(teller, pocket):
    there = teller.pocket()
    teller.bank.advance(et_instant(date(2025, 6, 4), 8, 29))
    assert teller.move(pocket, there, None)["reason"] == "INSUFFICIENT_FUNDS"
    teller.bank.advance(et_instant(date(2025, 6, 4), 8, 30))
    assert teller.move(pocket, there, None)["status"] == "COMPLETED"
    assert (pocket.lots, pocket.cash.balance) == ([], 0)


def test_bills_move_in_kind_only_if_the_rest_covers_the_hold(teller, pocket):
    """15 bills are worth $1,496.20 and $999.89 is free, but that is 11 bills or $1,097.21."""
    there = teller.pocket()
    refused = teller.move(pocket, there, 999_89, order=IN_KIND)
    assert (refused["status"], refused["reason"]) == ("REJECTED", "INSUFFICIENT_FUNDS")
    assert (pocket.positions()[0][1], there.positions()) == (15, [])
    moved = teller.move(pocket, there, 997_47, order=IN_KIND)
    assert (moved["status"], moved["amount"]) == ("COMPLETED", 997_47)
    assert [units for _, units in pocket.positions() + there.positions()] == [5, 10]
