"""Rules that sell skip a matured bill and sell the next one."""

from datetime import timedelta
from uuid import UUID

import pytest

from billfold.ledger.book.postings import TradeEntry
from billfold.payments.adjustments.rules import PostGoodwillCredit, ReverseTransaction
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.dates import et_instant
from billfold.treasury.rules.overdraft import overdraft_of

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")


@pytest.fixture
def two_bills(teller):
    """A pocket with a bill that has matured and one that has not, at seven in the morning."""
    pocket = teller.pocket()
    teller.deposit(pocket, 3_000_00)
    first = pocket.lots[0].maturity
    teller.bank.advance(et_instant(first - timedelta(days=7), 10))
    teller.deposit(pocket, 5_000_00)
    teller.bank.advance(et_instant(first, 7))
    matured, young = pocket.lots
    assert matured.maturity == first < young.maturity
    return pocket, matured, young


@pytest.mark.parametrize("fields", [{}, {"order": IN_KIND}])
def test_a_transfer_sells_the_next_bill_when_the_first_has_matured(teller, two_bills, fields):
    pocket, matured, young = two_bills
    units = matured.units, young.units
    teller.move(pocket, teller.pocket(), 1_000_00, **fields)
    assert matured.units == units[0]
    assert young.units < units[1]
    sold = [row for row in teller.bank.tables[TradeEntry] if row.pocket_id == pocket.pocket_id][-1]
    assert sold.cusip == young.cusip


def test_a_full_transfer_in_kind_leaves_a_matured_bill_in_the_pocket(teller, two_bills):
    pocket, matured, _ = two_bills
    units = matured.units
    teller.move(pocket, teller.pocket(), None, order=IN_KIND)
    assert [(lot.cusip, lot.units) for lot in pocket.lots] == [(matured.cusip, units)]


def test_an_overdraft_is_repaid_when_a_matured_bill_is_redeemed(teller):
    pocket = teller.pocket()
    given = teller.do(
        PostGoodwillCredit, pocket_id=pocket.pocket_id, amount=3_000_00, credit_type="PROMOTION", description="welcome"
    )
    (lot,) = pocket.lots
    teller.bank.advance(et_instant(lot.maturity, 7))
    activity_id = UUID(given["activity_id"])
    teller.do(ReverseTransaction, activity_id=activity_id, description="a mistake", references=(activity_id,))
    assert pocket.lots == [lot]
    assert overdraft_of(pocket) > 2_800_00
    teller.bank.advance(et_instant(lot.maturity, 9))
    assert overdraft_of(pocket) == 0
    assert pocket.inflow - pocket.outflow + pocket.realised - pocket.fees == sum(
        each.earnings_basis for each in pocket.lots
    ) + (pocket.cash.balance)
