"""Proceeds of a sale for the next day: using them before costs as much as a sale for today.

Thursday 2025-06-05 after the close: what is sold for the next day settles on Monday, three days of interest later.
"""

from datetime import date
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.teller import Teller
from tests.support.whole_bank import BETA

from billfold.accounts.counterparties.types import Payee
from billfold.ledger.book.postings import TransactionEntry
from billfold.payments.ach.commands import IncomingEntry, ReceiveAch, ReturnAchEntry
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.dates import et_instant
from billfold.treasury.rules.unsettled import pay_from_cash
from billfold.treasury.rules.withdraw import payable_cents

THURSDAY, FRIDAY, MONDAY = date(2025, 6, 5), date(2025, 6, 6), date(2025, 6, 9)
MILLION = 1_000_000_00


def same_day(teller, pocket):
    return payable_cents(pocket, teller.bank._moment())


@pytest.fixture
def teller(request):
    """A million in bills on Thursday morning, and Thursday after the close."""
    teller = Teller(haircut_bps=getattr(request, "param", 0))
    teller.bank.advance(et_instant(THURSDAY, 10))
    return teller


@pytest.fixture
def funded_pocket(teller):
    pocket = teller.pocket()
    teller.deposit(pocket, MILLION)
    teller.bank.advance(et_instant(THURSDAY, 17, 1))
    return pocket


def fees_of(teller, pocket):
    rows = teller.bank.tables[TransactionEntry]
    return [row for row in rows if row.type == "FEE" and row.pocket_id == pocket.pocket_id]


def paid_out(teller, pocket, cents=None):
    """Pay another customer from the pocket; return the cents paid."""
    place = teller.new_pocket(teller.new_customer(f"Payee {teller.count}"))
    link = place.id
    linked: dict[str, Any] = {"type": "on_us", "status": "LINKED", "counterparty_name": BETA, "details": {}}
    linked |= {"counterparty_id": link, "verification": {"type": "name_match"}, "target_pocket_id": place.id}
    teller.bank.seen.put(teller.customer, link, Payee(**linked))
    order = TransferOrder(counterparty_id=link)
    paid = teller.transfer(teller.place_of(pocket), place, cents, order=order, addresses=("a", "b"), references=(link,))
    return paid["amount"] if paid["status"] == "COMPLETED" else 0


def test_a_transfer_after_the_close_does_not_increase_the_same_day_payout(teller, funded_pocket):
    payable = same_day(teller, funded_pocket)
    there = teller.pocket()
    moved = teller.move(funded_pocket, there, None)
    assert moved["amount"] > payable + 200_00
    assert same_day(teller, there) == payable
    assert paid_out(teller, there) == payable
    (fee,) = fees_of(teller, there)
    assert (fee.amount, fee.title) == (moved["amount"] - payable, "Same-day fee")
    assert there.cash.balance == there.unsettled == there.unsettled_discount == 0


def test_many_small_payments_of_unsettled_cash_cost_as_much_as_one(teller, funded_pocket):
    payable = same_day(teller, funded_pocket)
    there = teller.pocket()
    teller.move(funded_pocket, there, None)
    for cents in (1, 9_999, 123_456_78, 1, 500_000_00):
        payable -= paid_out(teller, there, cents)
    assert payable - 10 <= paid_out(teller, there) <= payable


def test_settled_cash_is_used_first_and_without_a_fee(teller, funded_pocket):
    there = teller.pocket()
    teller.deposit(there, 5_000_00)
    teller.move(funded_pocket, there, 10_000_00)
    assert paid_out(teller, there, 5_000_00) == 5_000_00
    assert not fees_of(teller, there)
    assert paid_out(teller, there, 5_000_00) == 5_000_00
    assert len(fees_of(teller, there)) == 1


def test_settled_cash_that_is_reserved_leaves_unsettled_cash_to_pay_from(teller, funded_pocket):
    there = teller.pocket()
    teller.deposit(there, 5_000_00)
    teller.move(funded_pocket, there, 10_000_00)
    book, ctx = teller.book, teller.bank._moment()
    book.begin("payment", ctx, settles_on=FRIDAY)
    book.reserve(there.cash, book.internal_account("rail:card"), 1_000_00)
    assert pay_from_cash(book, there, ctx, 4_000_00) is None
    pay_from_cash(book, there, ctx, 500_00)
    assert there.unsettled == 9_500_00


def test_unsettled_cash_invested_in_bills_loses_its_same_day_fee(teller, funded_pocket):
    there = teller.pocket()
    teller.move(funded_pocket, there, None)
    teller.bank.advance(et_instant(FRIDAY, 9))
    assert there.lots
    assert there.unsettled <= there.cash.balance < 100_00
    assert there.unsettled_discount <= 5
    payable = same_day(teller, there)
    assert paid_out(teller, there) == payable
    assert [fee.title for fee in fees_of(teller, there)] == ["AUM fee"]


def test_unsettled_cash_becomes_settled_on_its_day_without_a_fee(teller, funded_pocket):
    """A Pocket that has no prices to buy at keeps its cash: on Monday it is settled like any other."""
    there = teller.pocket()
    moved = teller.move(funded_pocket, there, None)["amount"]
    there.uninvested = moved
    teller.bank.advance(et_instant(FRIDAY, 18))
    assert same_day(teller, there) < moved
    teller.bank.advance(et_instant(MONDAY, 9))
    there.uninvested = 0
    assert same_day(teller, there) >= moved - 100
    assert not fees_of(teller, there)


def test_a_transfer_moves_the_same_day_discount_with_the_unsettled_cash(teller, funded_pocket):
    payable = same_day(teller, funded_pocket)
    pockets = [funded_pocket, *(teller.pocket(weeks) for weeks in (13, 26, 52, 4))]
    for here, there in pairwise(pockets):
        assert teller.move(here, there, None)["status"] == "COMPLETED"
        assert sum(same_day(teller, each) for each in pockets) == payable


def test_a_transfer_that_repays_an_overdraft_is_priced_for_today(teller, funded_pocket):
    there = teller.pocket()
    owing = teller.pocket()
    teller.book.begin("adjustment", teller.bank._moment(), settles_on=FRIDAY)
    owed = teller.book.owed_account(owing)
    teller.book.post(owed, owing.bank, MILLION)
    teller.book.post(owing.bank, there.bank, MILLION)
    teller.book.post(there.bank, there.cash, MILLION)
    teller.book.close()
    payable = same_day(teller, funded_pocket)
    teller.move(funded_pocket, owing, None)
    assert owing.owed.balance == payable - MILLION


@pytest.mark.parametrize("teller", [0, 3], indirect=True)
def test_an_ach_debit_returned_before_its_bill_sales_settle_restores_unsettled_cash(teller, funded_pocket):
    """Bills are sold for Monday; what its return brings on the same evening is cash of Monday."""
    payable = same_day(teller, funded_pocket)
    ach_id = UUID(int=7)
    entry = IncomingEntry(
        code="27",
        amount=MILLION // 2,
        account_number="1",
        name="SOMEBODY",
        identification="",
        trace="091000010000001",
        bank="09100001",
        entry_class="PPD",
        company="ACME",
        company_id="9000000001",
        purpose="PAYMENT",
    )
    fields = {"ach_id": ach_id, "references": (ach_id,)}
    portal = teller.portals[funded_pocket.pocket_id]
    received = teller.do(
        ReceiveAch, file_id=ach_id, pocket_id=funded_pocket.pocket_id, portal_id=portal, entry=entry, **fields
    )
    assert received["status"] == "COMPLETED"
    teller.do(ReturnAchEntry, code="R10", **fields)
    assert funded_pocket.unsettled_on == MONDAY
    assert same_day(teller, funded_pocket) <= payable
    teller.bank.advance(et_instant(MONDAY, 10))
    assert same_day(teller, funded_pocket) > payable


@pytest.mark.parametrize("closed", [False, True])
def test_swapping_bill_terms_does_not_increase_the_same_day_payout(closed):
    """Friday 2024-08-30, before Labor Day: 4 weeks at 5.13 %, 52 weeks at 4.20 %. A hop lets no more be paid out."""
    teller = Teller()
    teller.bank.now = et_instant(date(2024, 8, 29), 10)
    short, long = teller.pocket(4), teller.pocket(52)
    teller.deposit(short, MILLION)
    teller.bank.advance(et_instant(date(2024, 8, 30), 18 if closed else 11))
    payable = same_day(teller, short)
    teller.move(short, long, None)
    assert same_day(teller, short) + same_day(teller, long) <= payable
