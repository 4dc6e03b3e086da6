"""A bill matures: par is credited, and the money buys the next bill of the strategy."""

from billfold.events import kinds
from billfold.ledger.book import recording as record
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Lot, PocketBook
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind, TradeActivity
from billfold.platform.money import PRICE_PAR_MICROS, cents_for
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.invest import invest
from billfold.treasury.rules.recover import recover_overdraft_from_cash


def mature(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Redeem every lot whose maturity has come and reinvest the proceeds, in one journal entry.

    A pocket without a reinvestment strategy keeps the proceeds as cash that is left alone.
    """
    matures_at = ctx.calendars.matures_at
    gone = [lot for lot in pocket.lots if matures_at(lot.maturity) <= ctx.now]
    if not gone:
        return
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.MATURITY, ctx, settles_on=ctx.business_date)
    by_cusip: dict[str, list[Lot]] = {}
    for lot in gone:
        by_cusip.setdefault(lot.asset, []).append(lot)
    for cusip, lots in by_cusip.items():
        _redeem(book, pocket, ctx, cusip=cusip, lots=lots)
    recover_overdraft_from_cash(book, pocket, ctx)
    if pocket.reinvestment_weeks is not None:
        invest(book, pocket, ctx, weeks=pocket.reinvestment_weeks)
    book.close()


def _redeem(book: Book, pocket: PocketBook, ctx: Context, cusip: str, lots: list[Lot]) -> None:
    treasury = book.internal_account(AccountKind.TREASURY, cusip)
    units = tax = earnings = 0
    for lot in lots:
        units += lot.balance
        tax += lot.tax_basis
        earnings += lot.earnings_basis
        book.post(lot, treasury, lot.balance)
        book.lot_out(pocket, lot, lot.tax_basis, earnings=lot.earnings_basis)
    book.retire_lots(pocket, lots)
    par = cents_for(units, PRICE_PAR_MICROS)
    book.post(book.internal_account(AccountKind.TREASURY), pocket.cash, par)
    pocket.realised += par - earnings
    if pocket.reinvestment_weeks is None:
        pocket.uninvested += par
    trade_id = record.trade(
        book,
        pocket,
        ctx,
        activity=TradeActivity.MATURITY,
        incoming=False,
        cusip=cusip,
        units=units,
        price_micros=PRICE_PAR_MICROS,
        notional=par,
        tax_basis=tax,
        earnings_basis=earnings,
        settles_on=book.business_date,
    )
    payload = kinds.MaturityPayload(trade_id=trade_id, pocket_id=pocket.pocket_id, cusip=cusip)
    record.event(book, ctx, kinds.TRADE_MATURITY, payload=payload)
