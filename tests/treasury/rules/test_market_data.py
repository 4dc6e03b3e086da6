"""A production bank trades on current market data only; money that arrives meanwhile waits."""

from datetime import date

import msgspec
import pytest
from tests.fixtures.market import know_through
from tests.fixtures.teller import START

from billfold.accounts.pockets.commands import UpdatePocket
from billfold.bills.rules.market import Market, market_data_states
from billfold.bills.rules.pricing import subtract_spread
from billfold.ledger.book.postings import TradeEntry
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.dates import et_instant
from billfold.platform.errors import NotFound
from billfold.treasury.rules.catch_up import InvestWaitingCash

FRIDAY, MONDAY, TUESDAY = date(2025, 5, 30), date(2025, 6, 2), date(2025, 6, 3)


@pytest.fixture
def pocket_with_bills(teller):
    """A Pocket with bills, at a bank whose newest rates are two market days old on Tuesday."""
    pocket = teller.pocket()
    teller.deposit(pocket, 50_000_00)
    assert pocket.lots
    know_through(teller.bank, FRIDAY)
    teller.until(TUESDAY)
    return pocket


def test_deposits_with_stale_prices_remain_cash_until_market_data_arrive(teller, pocket_with_bills):
    empty, small = teller.pocket(), teller.pocket()
    teller.deposit(empty, 20_000_00)
    teller.deposit(small, 50_00)
    assert (empty.cash.balance, empty.lots) == (20_000_00, [])
    teller.until(date(2025, 6, 5))
    assert empty.cash.balance == 20_000_00
    assert empty.invest_at == et_instant(date(2025, 6, 6), 8)
    know_through(teller.bank, date(2025, 6, 4))
    teller.do(InvestWaitingCash)
    assert empty.invest_at is small.invest_at is None
    assert empty.cash.balance < 100_00
    bought = teller.bank.tables[TradeEntry][-1]
    assert (bought.activity, bought.pocket_id, bought.book_date) == ("BUY", empty.pocket_id, date(2025, 6, 5))
    assert pocket_with_bills.lots


def test_a_payout_with_stale_prices_sells_at_a_wider_haircut(teller, pocket_with_bills):
    bank, other = teller.bank, teller.pocket()
    bank.terms = msgspec.structs.replace(bank.terms, stale_haircut_bps=25)
    bank._ctx = None
    cusip = pocket_with_bills.lots[0].cusip
    full = bank.market.t1_bid(bank.market.bill(cusip), bank.now)
    assert teller.move(pocket_with_bills, other, 1_000_00)["status"] == "COMPLETED"
    sold = bank.tables[TradeEntry][-1]
    assert (sold.activity, sold.price_micros) == ("SELL", subtract_spread(full, 25))


def test_cash_can_be_withdrawn_with_stale_prices(teller, pocket_with_bills):
    waiting = teller.pocket()
    teller.deposit(waiting, 5_000_00)
    assert teller.move(waiting, pocket_with_bills, 5_000_00)["status"] == "COMPLETED"
    in_kind = TransferOrder(transfer_type="SECURITY_TRANSFER")
    assert teller.move(pocket_with_bills, waiting, 1_000_00, order=in_kind)["status"] == "COMPLETED"


def test_due_work_is_executed_with_stale_prices(teller, pocket_with_bills):
    teller.do(UpdatePocket, pocket_id=pocket_with_bills.pocket_id, keep_reinvestment=False, reinvestment_weeks=4)
    teller.until(date(2025, 7, 2))
    assert not pocket_with_bills.lots
    assert pocket_with_bills.cash.balance > 50_000_00
    assert (pocket_with_bills.invest_at, pocket_with_bills.fees > 0) == (et_instant(date(2025, 7, 3), 8), True)


def test_a_fee_that_requires_selling_bills_remains_accrued_with_stale_prices(teller):
    pocket = teller.pocket(weeks=26)
    teller.deposit(pocket, 1_000_000_00)
    cash = pocket.cash.balance
    know_through(teller.bank, FRIDAY)
    teller.until(date(2025, 7, 1))
    assert pocket.fees == cash
    assert pocket.fee_accrued > 0
    assert pocket.next_fee_date == date(2025, 8, 1)


def test_trading_uses_rates_of_the_previous_market_day_but_not_older_ones(teller):
    know_through(teller.bank, FRIDAY)
    market = teller.bank.market
    assert market.is_current(START)
    assert market.is_current(et_instant(TUESDAY, 7)), "Monday's prices hold until Tuesday's opening"
    assert not market.is_current(et_instant(TUESDAY, 8))
    (rates, *_) = market_data_states(market, et_instant(TUESDAY, 8))
    assert (rates.newest, bool(rates.problem)) == ("May 30, 2025, 2 bond market days ago", True)


def test_no_bill_is_simulated_beyond_the_known_auctions(teller):
    know_through(teller.bank, date(2026, 8, 11))
    market = teller.bank.market
    day = date(2027, 3, 3)
    with pytest.raises(NotFound):
        market.on_the_run(4, day)
    states = list(market_data_states(market, et_instant(day, 10)))
    assert [bool(each.problem) for each in states[:2]] == [True, True]
    assert Market.packaged(market.calendars).on_the_run(4, day).simulated
