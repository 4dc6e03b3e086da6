"""Withdrawals: accrued fees and money at risk of return remain."""

import pytest
from tests.fixtures.teller import Teller

from billfold.bills.rules.fees import ACCRUED_UNITS_PER_CENT
from billfold.ledger.types import JournalKind
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.liquidate import liquidation_value
from billfold.treasury.rules.withdraw import InsufficientFunds, require_at_most, withdraw


def withdraw_cents(teller, pocket, cents, **fields):
    ctx = teller.bank._moment()
    book = teller.book
    book.savepoint()
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.PAYMENT, ctx, settles_on=ctx.business_date)
    return withdraw(
        book,
        pocket,
        ctx,
        cents,
        terms=ctx.same_day,
        to=book.internal_account("rail:wire"),
        **fields,
    )


def test_money_on_hold_for_ach_returns_cannot_be_withdrawn():
    teller = Teller(ach_credit_hold_days=2)
    pocket = teller.pocket()
    teller.deposit(pocket, 1_000_00, rail="ACH")
    teller.deposit(pocket, 1_000_00)

    free = liquidation_value(pocket, teller.bank._moment().same_day) - 1_000_00
    pocket.fee_accrued = ACCRUED_UNITS_PER_CENT

    with pytest.raises(InsufficientFunds):
        withdraw_cents(teller, pocket, free)
    teller.book.undo()
    assert withdraw_cents(teller, teller.book.pockets[pocket.pocket_id], free - 1)[0] == free - 1


def test_a_full_withdrawal_keeps_the_fee_reserve_in_cash():
    teller = Teller()
    pocket = teller.pocket()
    teller.deposit(pocket, 1_000_00)

    pocket.outflow = before = 7_00
    amount, *_ = withdraw_cents(teller, pocket, None, fee_reserve=15_00)
    require_at_most(amount, amount)

    assert pocket.cash.balance == 15_00
    assert pocket.outflow == before + amount
