"""Bills become cash: shortest maturity first, FIFO within a bill, whole bills only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

from billfold.bills.rules import lots as lots_module
from billfold.bills.rules.lots import Sale
from billfold.ledger.book import recording as record
from billfold.ledger.types import AccountKind, TradeActivity
from billfold.platform.money import cents_for

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import Lot, PocketBook
    from billfold.ledger.commands import Context


def liquidation_value(pocket: PocketBook, price_of: Callable[[str], int]) -> int:
    """Cents the pocket would have in cash if every bill were sold at these prices."""
    cash = pocket.cash.balance - pocket.cash.reserved
    lots = pocket.lots
    if len(lots) == 1:
        return cash + cents_for(lots[0].balance, price_of(lots[0].asset))
    return cash + sum(cents_for(units, price_of(cusip)) for cusip, units in pocket.positions())


def raise_cash(
    book: Book, pocket: PocketBook, ctx: Context, need: int, *, price_of: Callable[[str], int], settles_on: date
) -> bool:
    """Sell until the pocket's free cash covers `need` cents, in the open journal entry.

    Residual cash is used first. Returns False, having changed nothing, when all bills
    together do not reach.
    """
    missing = need - (pocket.cash.balance - pocket.cash.reserved)
    if missing <= 0:
        return True
    sales = lots_module.plan_sale(pocket.lots, missing, price_of)
    if sales is None:
        return False
    street = book.internal_account(AccountKind.STREET)
    for sale in sales:
        _sell(book, pocket, ctx, sale=sale, settles_on=settles_on)
        book.post(street, pocket.cash, sale.proceeds_cents)
    return True


def sell_all(book: Book, pocket: PocketBook, ctx: Context, *, price_of: Callable[[str], int], settles_on: date) -> None:
    """Sell every bill the pocket holds, in the open journal entry."""
    value = liquidation_value(pocket, price_of)
    if pocket.lots:
        raise_cash(book, pocket, ctx, need=value, price_of=price_of, settles_on=settles_on)


def _sell(book: Book, pocket: PocketBook, ctx: Context, sale: Sale[Lot], settles_on: date) -> None:
    away = book.internal_account(AccountKind.STREET, sale.cusip)
    tax = earnings = 0
    for lot, units in sale.taken:
        tax_part = lots_module.allocate_basis(lot.tax_basis, units, lot.balance)
        earnings_part = lots_module.allocate_basis(lot.earnings_basis, units, lot.balance)
        book.post(lot, away, units)
        book.lot_out(pocket, lot, tax_part, earnings=earnings_part)
        tax += tax_part
        earnings += earnings_part
    pocket.realised += sale.proceeds_cents - earnings
    record.trade(
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
