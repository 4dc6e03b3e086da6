"""Due work is done once, at its own instant, and terminates."""

from datetime import date, timedelta

import pytest
from tests.fixtures.teller import Teller

from billfold.accounts.pockets.commands import UpdatePocket
from billfold.bills.rules.fees import ACCRUED_UNITS_PER_CENT
from billfold.ledger.book.postings import JournalEntry, PocketSnapshot, Posting, TradeEntry, TransactionEntry
from billfold.ledger.context import Context
from billfold.ledger.scheduler import CatchUp
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.calendars import Calendars, DayOverride
from billfold.platform.dates import et_instant
from billfold.platform.errors import Refused
from billfold.treasury.rules.catch_up import catch_up
from billfold.treasury.rules.day_end import charge_fee

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")

MONDAY = date(2025, 6, 9)


def closed_on(*days):
    """Calendars in which these days have been declared closed."""
    return Calendars({day: DayOverride(fed_open=False, bond_open=False) for day in days})


def at_night(teller):
    """Deposit on Friday evening: the money waits for Monday's opening."""
    pocket = teller.pocket()
    teller.bank.advance(et_instant(date(2025, 6, 6), 20))
    teller.deposit(pocket, 10_000_00)
    assert pocket.invest_at == et_instant(MONDAY, 8)
    return pocket


def test_a_night_deposit_is_invested_when_the_market_opens(teller):
    pocket = at_night(teller)
    teller.bank.advance(et_instant(MONDAY, 8))
    assert pocket.invest_at is None
    assert pocket.cash.balance < 100_00
    assert [lot.acquired_on for lot in pocket.lots] == [MONDAY]


def test_reserved_cash_is_not_invested(teller):
    pocket = at_night(teller)
    teller.book.begin("payment", teller.bank._moment(), settles_on=MONDAY)
    teller.book.reserve(pocket.cash, teller.book.internal_account("rail:card"), 9_950_00)
    teller.bank.advance(et_instant(MONDAY, 8))
    assert (pocket.lots, pocket.invest_at) == ([], None)


def test_investment_of_waiting_cash_is_postponed_by_a_declared_closure(teller):
    pocket = at_night(teller)
    closed = closed_on(MONDAY)
    teller.bank.market.calendars = closed
    ctx = Context(
        now=et_instant(MONDAY, 12), market=teller.bank.market, calendars=closed, terms=teller.bank.terms, seed=b"x"
    )
    catch_up(teller.book, ctx)
    assert pocket.invest_at == et_instant(MONDAY + timedelta(days=1), 8)


def test_a_changed_calendar_updates_the_due_time_of_a_ledger_head(teller):
    pocket = teller.pocket()
    teller.deposit(pocket, 10_000_00)
    was_due = teller.book.due_at
    assert was_due == et_instant(date(2025, 6, 2), 17)
    teller.bank.market.calendars = Calendars(closes=Calendars().closes)
    teller.book.due_at = was_due - timedelta(hours=4)  # after an early close
    teller.bank.now += timedelta(hours=5)
    version = teller.book.version
    teller.bank.submit(CatchUp(caller="due", key=teller.customer, customers=(teller.customer,)))
    assert teller.book.due_at == was_due
    assert teller.book.version == version + 1


def test_work_due_at_the_instant_of_a_command_is_executed_first(teller):
    pocket = teller.pocket(reinvest=None)
    teller.deposit(pocket, 10_000_00)
    matures_at = teller.bank.calendars.matures_at(pocket.lots[0].maturity)
    teller.bank.advance(matures_at - timedelta(seconds=1))
    teller.bank.now = matures_at
    teller.pocket()
    assert not pocket.lots


def test_the_end_of_a_day_stores_a_snapshot_of_its_movements(teller):
    pocket = teller.pocket()
    teller.deposit(pocket, 10_000_00)
    teller.move(pocket, teller.pocket(), 1_000_00)
    teller.bank.advance(et_instant(date(2025, 6, 2), 18))
    (kept,) = [row for row in teller.bank.tables[PocketSnapshot] if row.pocket_id == pocket.pocket_id]
    assert (kept.business_date, kept.inflow, kept.outflow) == (date(2025, 6, 2), 10_000_00, 1_000_00)
    assert (kept.cash, kept.earnings_basis) == (pocket.cash.balance, pocket.earnings_basis())


def test_no_fee_is_charged_for_months_with_an_empty_pocket(teller):
    pocket = teller.pocket()
    teller.bank.now = et_instant(date(2025, 9, 15), 10)
    teller.deposit(pocket, 10_000_00)
    assert pocket.next_fee_date == date(2025, 10, 1)
    assert teller.book.due_at > teller.bank.now


def test_the_fee_is_charged_on_the_first_business_day_of_the_month(teller):
    pocket, small = teller.pocket(weeks=26), teller.pocket()
    teller.deposit(pocket, 1_000_000_00)
    teller.deposit(small, 51_00)
    assert small.accrued_through == date(2025, 6, 1), "this day costs as well"
    teller.bank.advance(et_instant(date(2025, 7, 1), 9))
    # 29 days of June at 25 bps a year on about a million dollars.
    assert 197_00 < pocket.fees < 200_00
    assert pocket.next_fee_date == date(2025, 8, 1)
    assert (small.fees, small.cash.balance) == (1, 50_99), "28 days cost less than a cent"


def test_a_fee_over_the_pocket_balance_remains_accrued(teller):
    pocket, other = teller.pocket(weeks=26), teller.pocket()
    teller.deposit(pocket, 1_000_000_00)
    teller.bank.advance(et_instant(date(2025, 6, 20), 10))
    teller.move(pocket, other, None)
    assert not pocket.lots
    assert pocket.fees > 0
    left = pocket.fee_accrued
    assert left < 3_650_000
    teller.bank.advance(et_instant(date(2025, 9, 15), 10))
    assert pocket.fee_accrued == left


def test_a_fee_leaves_reserved_cash_and_bounds_what_is_uninvested(teller, monkeypatch):
    pocket = teller.pocket(weeks=26)
    teller.deposit(pocket, 10_000_00)
    pocket.uninvested = pocket.cash.balance
    book, ctx = teller.book, teller.bank._moment()
    book.begin("payment", ctx, settles_on=ctx.today)
    book.reserve(pocket.cash, book.internal_account("rail:card"), pocket.cash.balance - 3)
    accrued = pocket.fee_accrued = 2 * ACCRUED_UNITS_PER_CENT + 1
    reserved = pocket.cash.reserved
    charge_fee(book, pocket, ctx)
    assert (pocket.fees, pocket.fee_accrued, pocket.cash.balance) == (2, 1, reserved + 1)
    assert pocket.uninvested == pocket.cash.balance
    pocket.fee_accrued = accrued
    charge_fee(book, pocket, ctx)
    assert pocket.fees == 4
    assert pocket.cash.balance > reserved + 90_00
    monkeypatch.setattr(type(ctx.market), "is_current", lambda *_: False)
    pocket.fee_accrued = pocket.cash.balance * ACCRUED_UNITS_PER_CENT
    charge_fee(book, pocket, ctx)
    assert pocket.cash.balance == reserved


def test_matured_money_without_reinvestment_remains_uninvested(teller):
    pocket = teller.pocket(reinvest=None)
    teller.deposit(pocket, 10_000_00)
    teller.bank.advance(et_instant(date(2025, 7, 15), 10))
    assert not pocket.lots
    uninvested = pocket.uninvested
    assert 9_900_00 < uninvested <= pocket.cash.balance
    teller.deposit(pocket, 5_000_00)
    assert pocket.uninvested == uninvested
    assert sum(units for _, units in pocket.positions()) in {49, 50}


def test_uninvested_money_is_invested_at_the_next_open_after_setting_a_strategy(teller):
    pocket = teller.pocket(reinvest=None)
    teller.deposit(pocket, 10_000_00)
    teller.bank.advance(et_instant(date(2025, 7, 15), 10))
    assert (pocket.lots, pocket.uninvested > 0) == ([], True)
    teller.do(UpdatePocket, pocket_id=pocket.pocket_id, keep_reinvestment=False, reinvestment_weeks=13)
    assert not pocket.lots
    teller.bank.advance(et_instant(date(2025, 7, 16), 8))
    assert [lot.acquired_on for lot in pocket.lots] == [date(2025, 7, 16)]
    assert pocket.cash.balance < 100_00


def test_a_late_worker_books_the_same_entries_as_a_punctual_one(teller):
    late = Teller()
    for each in (teller, late):
        each.deposit(each.pocket(), 50_000_00)
    end = et_instant(date(2025, 8, 20), 11)
    teller.bank.advance(end)
    late.bank.now = end
    late.bank.submit(CatchUp(caller="due", key=late.customer, customers=(late.customer,)))
    for table in (JournalEntry, Posting, TradeEntry, PocketSnapshot, TransactionEntry):
        assert teller.bank.tables[table] == late.bank.tables[table]


def test_a_pocket_emptied_at_night_can_be_closed_immediately(teller):
    pocket, other = teller.pocket(), teller.pocket()
    teller.bank.advance(et_instant(date(2025, 6, 6), 20))
    teller.deposit(pocket, 10_000_00)
    teller.move(pocket, other, None)
    teller.do(UpdatePocket, pocket_id=pocket.pocket_id, close_for="not needed")
    assert (pocket.status, pocket.invest_at) == ("CLOSED", None)
    teller.bank.advance(et_instant(date(2025, 6, 20), 20))


def test_returned_bills_go_back_into_their_emptied_lot(teller):
    pocket, other = teller.pocket(), teller.pocket()
    teller.deposit(pocket, 10_000_00)
    (lot,) = pocket.lots
    units, tax = lot.units, lot.tax_basis
    teller.move(pocket, other, None, order=IN_KIND)
    assert not pocket.lots
    teller.move(other, pocket, None, order=IN_KIND)
    assert pocket.lots == [lot]
    assert (lot.units, lot.tax_basis) == (units, tax)


def test_a_transfer_from_a_pocket_to_itself_is_refused(teller):
    pocket = teller.pocket()
    teller.deposit(pocket, 10_000_00)
    for fields in ({}, {"order": IN_KIND}, {"later": True}):
        with pytest.raises(Refused) as refused:
            teller.move(pocket, pocket, 100_00, **fields)
        assert refused.value.code == "same-pocket"


def test_a_transfer_of_held_money_is_rejected_without_side_effects():
    teller = Teller(ach_credit_hold_days=2)
    pocket, other = teller.pocket(), teller.pocket()
    teller.deposit(pocket, 10_000_00, "ACH")
    before = dict(pocket.positions()), pocket.cash.balance, pocket.fees
    for cents, fields in ((None, {}), (1_00, {}), (1_00, {"order": IN_KIND})):
        assert teller.move(pocket, other, cents, **fields)["status"] == "REJECTED"
    assert (dict(pocket.positions()), pocket.cash.balance, pocket.fees) == before
    teller.bank.advance(et_instant(date(2025, 6, 4), 9))
    assert teller.move(pocket, other, None)["status"] == "COMPLETED"
