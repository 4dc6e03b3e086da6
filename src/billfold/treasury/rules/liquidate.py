"""Bills become cash: shortest maturity first, FIFO within a bill, whole bills only."""

from datetime import date

from billfold.bills.rules import lots as bill_lots
from billfold.bills.rules.lots import Sale
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Lot, PocketBook
from billfold.ledger.context import Context, SaleTerms
from billfold.ledger.types import AccountKind, TradeActivity
from billfold.platform.money import cents_for
from billfold.treasury.rules.unsettled import Proceeds, add_unsettled, free_cash, settle_early


def liquidation_value(pocket: PocketBook, terms: SaleTerms) -> int:
    """Return the cents of cash that the pocket would have if every bill were sold on these terms."""
    cash, price_of = free_cash(pocket, terms), terms.price_of
    lots = pocket.lots
    if len(lots) == 1:
        return cash + cents_for(lots[0].balance, price_of(lots[0].asset))
    return cash + sum(cents_for(units, price_of(cusip)) for cusip, units in pocket.positions())


def raise_cash(book: Book, pocket: PocketBook, ctx: Context, need: int, *, terms: SaleTerms) -> bool:
    """Sell until the pocket's free cash covers `need` cents on these terms, in the open journal entry.

    Settled cash is used first, then cash that settles later, then bills. Returns False, and changes
    nothing, if all of it is not enough.
    """
    early = pocket.unsettled_after(terms.cash_on)
    missing = need - (pocket.cash.balance - pocket.cash.reserved - early)
    if missing <= 0:
        return True
    worth = early - pocket.unsettled_discount if early else 0
    sales = bill_lots.plan_sale(pocket.lots, missing - worth, terms.price_of)
    if sales is None:
        return False
    if early:
        settle_early(book, pocket, ctx, need=missing)
    street = book.internal_account(AccountKind.STREET)
    for sale in sales:
        _sell_lots(book, pocket, ctx, sale=sale, settles_on=max(terms.settles_on, book.business_date))
        book.post(street, pocket.cash, sale.proceeds_cents)
    if sales and terms.cash_on > ctx.pricing_day:
        add_unsettled(book, pocket, ctx, _proceeds(sales, ctx, terms))
    return True


def _proceeds(sales: list[Sale[Lot]], ctx: Context, terms: SaleTerms) -> Proceeds:
    """Return the cash of a sale for a later day: its discount is the shortfall of a same-day sale."""
    cents = sum(sale.proceeds_cents for sale in sales)
    today = sum(cents_for(sale.units, ctx.t0_bid(sale.cusip)) for sale in sales)
    return Proceeds(cents, max(0, cents - today), terms.cash_on)


def sell_all(book: Book, pocket: PocketBook, ctx: Context, *, terms: SaleTerms) -> None:
    """Sell every bill the pocket holds, in the open journal entry."""
    raise_cash(book, pocket, ctx, need=liquidation_value(pocket, terms), terms=terms)


def _sell_lots(book: Book, pocket: PocketBook, ctx: Context, sale: Sale[Lot], settles_on: date) -> None:
    away = book.internal_account(AccountKind.STREET, sale.cusip)
    tax = earnings = 0
    for lot, units in sale.taken:
        tax_part = bill_lots.allocate_basis(lot.tax_basis, units, lot.balance)
        earnings_part = bill_lots.allocate_basis(lot.earnings_basis, units, lot.balance)
        book.post(lot, away, units)
        book.lot_out(pocket, lot, tax_part, earnings=earnings_part)
        tax += tax_part
        earnings += earnings_part
    pocket.realised += sale.proceeds_cents - earnings
    recording.trade(
        book,
        pocket,
        ctx,
        activity=TradeActivity.SELL,
        incoming=False,
        cusip=sale.cusip,
        units=sale.units,
        price_micros=sale.price_micros,
        notional=sale.proceeds_cents,
        tax_basis=tax,
        earnings_basis=earnings,
        settles_on=settles_on,
    )
