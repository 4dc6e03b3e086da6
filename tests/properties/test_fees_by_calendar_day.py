"""The fee is that of what a Pocket is worth at the end of every calendar day, whenever money comes or goes."""

from collections import Counter
from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.teller import Teller

from billfold.bills.rules.fees import ACCRUED_UNITS_PER_CENT
from billfold.ledger.book.postings import TradeEntry, TransactionEntry
from billfold.platform.dates import et_date, et_instant
from billfold.platform.money import cents_for

BPS = 25
FIRST = date(2025, 6, 2)
MOVES = st.lists(st.tuples(st.integers(1, 80), st.integers(-5_000_00, 60_000_00).filter(bool)), min_size=1, max_size=12)


def held_at(bank, pocket, at):
    """Cash and units per bill at an instant, from the rows that were written."""
    cash = 0
    units: Counter[str] = Counter()
    for row in bank.tables[TransactionEntry]:
        if row.pocket_id == pocket.pocket_id and row.booked_at < at:
            cash += row.amount if row.direction == "CREDIT" else -row.amount
    for row in bank.tables[TradeEntry]:
        if row.pocket_id == pocket.pocket_id and row.traded_at < at:
            cash += -row.notional if row.incoming else row.notional
            units[row.cusip] += row.units if row.incoming else -row.units
    return cash, units


def expected_units(bank, pocket, through):
    """The accrual of every day from the first up to `through`, in units of accrued fee."""
    total, day = 0, FIRST
    while day <= through:
        cash, units = held_at(bank, pocket, et_instant(day + timedelta(days=1), 0))
        worth = cash + sum(cents_for(count, bank.market.closing_mark(cusip, day)) for cusip, count in units.items())
        total += worth * BPS
        day += timedelta(days=1)
    return total


@settings(max_examples=40, deadline=None)
@given(MOVES)
def test_fees_accrue_daily_on_the_value_at_the_end_of_the_day(moves):
    teller = Teller(aum_fee_bps=BPS)
    pocket, other = teller.pocket(weeks=13), teller.pocket()
    for hours, cents in moves:
        teller.bank.advance(teller.bank.now + timedelta(hours=hours))
        if cents > 0:
            teller.deposit(pocket, cents)
        else:
            teller.move(pocket, other, -cents)
    counted = pocket.fees * ACCRUED_UNITS_PER_CENT + pocket.fee_accrued
    assert pocket.accrued_through < et_date(teller.bank.now)
    assert counted == expected_units(teller.bank, pocket, pocket.accrued_through)


def test_a_saturday_deposit_accrues_fees_for_saturday_and_sunday():
    teller = Teller(aum_fee_bps=BPS)
    pocket = teller.pocket()
    teller.bank.advance(et_instant(date(2025, 6, 7), 12))
    teller.deposit(pocket, 100_000_00)
    teller.bank.advance(et_instant(date(2025, 6, 9), 12))
    teller.deposit(pocket, 1_00)
    assert pocket.fee_accrued == 2 * 100_000_00 * BPS
