"""Maturities of bills: totals of their trades, and reinvestment of the money."""

from datetime import date, timedelta

from billfold.ledger.book.postings import JournalEntry, PocketSnapshot, TradeEntry
from billfold.ledger.types import JournalKind, TradeActivity
from billfold.platform.dates import et_instant
from billfold.platform.money import PRICE_PAR_MICROS, cents_for

TUESDAY = date(2025, 6, 3)


def test_two_lots_of_one_bill_mature_in_one_trade_and_are_reinvested_by_the_strategy(teller):
    pocket = teller.pocket(weeks=4, reinvest=13)
    for days, cents in enumerate((10_000_00, 7_000_00)):
        teller.bank.advance(et_instant(TUESDAY + timedelta(days), 10))
        teller.deposit(pocket, cents)
    teller.move(pocket, teller.pocket(), 500_00)
    first, second = pocket.lots
    assert first.cusip == second.cusip
    units, tax = first.units + second.units, first.tax_basis + second.tax_basis
    earnings, realised = first.earnings_basis + second.earnings_basis, pocket.realised

    teller.bank.advance(teller.bank.calendars.matures_at(first.maturity))

    matured, bought = (row for row in teller.bank.tables[TradeEntry][-3:] if row.pocket_id == pocket.pocket_id)
    assert (matured.activity, matured.incoming, matured.cusip) == (TradeActivity.MATURITY, False, first.cusip)
    assert (matured.units, matured.price_micros, matured.notional) == (units, PRICE_PAR_MICROS, units * 100_00)
    assert (matured.tax_basis, matured.earnings_basis) == (tax, earnings)
    assert pocket.realised == realised + units * 100_00 - earnings
    entry = next(row for row in teller.bank.tables[JournalEntry] if row.entry_no == matured.entry_no)
    assert (entry.kind, entry.settles_on) == (JournalKind.MATURITY, first.maturity)
    (lot,) = pocket.lots
    assert (lot.cusip, lot.units) == (bought.cusip, bought.units)
    assert bought.notional == bought.tax_basis == bought.earnings_basis == cents_for(lot.units, bought.price_micros)
    assert timedelta(weeks=12) < lot.maturity - first.maturity <= timedelta(weeks=13)


def test_repeated_maturities_without_reinvestment_remain_uninvested(teller):
    pocket = teller.pocket(weeks=4, reinvest=None)
    teller.deposit(pocket, 10_000_00)
    teller.bank.advance(et_instant(TUESDAY + timedelta(days=7), 10))
    teller.deposit(pocket, 7_000_00)
    first, second = pocket.lots
    assert first.maturity < second.maturity

    teller.bank.advance(teller.bank.calendars.matures_at(second.maturity))

    assert (pocket.lots, pocket.uninvested) == ([], (100 + 70) * 100_00)
    teller.until(second.maturity, 18)
    day = teller.bank.tables[PocketSnapshot][-1]
    assert (day.business_date, day.cash) == (second.maturity, pocket.cash.balance)
