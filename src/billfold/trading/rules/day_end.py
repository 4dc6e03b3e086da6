"""The day end of the desk: dealers are settled, the inventory is valued at the mark, and the result is posted."""

from collections.abc import Iterable
from datetime import date
from itertools import groupby

import msgspec

from billfold.ledger.book.book import USD, Book
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind
from billfold.platform.money import PRICE_PAR_MICROS, cents_for
from billfold.trading.rules.executions import post_signed
from billfold.trading.types import DealerDelivery, DealerSettlement, InventoryPosition


def settle_dealers(book: Book, ctx: Context, due: Iterable[DealerDelivery], day: date) -> None:
    """Settle what is due from dealers: one journal entry per settlement date."""
    in_order = sorted(due, key=lambda each: (each.settles_on, each.dealer, each.cusip))
    for settles_on, deliveries in groupby(in_order, key=lambda each: each.settles_on):
        entry_no = book.begin(JournalKind.DEALER_SETTLEMENT, ctx, settles_on=settles_on, business_date=day)
        for each in deliveries:
            dealer = AccountKind.of_dealer(each.dealer)
            cash = book.internal_account(dealer), book.internal_account(AccountKind.RESERVE)
            bills = book.internal_account(AccountKind.CUSTODIAN, each.cusip), book.internal_account(dealer, each.cusip)
            post_signed(book, *cash, amount=each.money)
            post_signed(book, *bills, amount=each.units)
            settled = msgspec.structs.asdict(each)
            book.draft.add(DealerSettlement(customer_id=book.customer_id, entry_no=entry_no, closed_on=day, **settled))
        book.close()


def value_inventory(book: Book, ctx: Context, day: date) -> None:
    """Redeem the bank's own bills that have matured, value the others at the mark, and post the trading result.

    After it the inventory in money is the value of its bills with the opposite sign.
    """
    inventory = book.house.get(AccountKind.INVENTORY + USD)
    if inventory is None:
        return
    at = ctx.calendars.closes_at(day)
    book.begin(JournalKind.TRADING_RESULT, ctx, settles_on=day, business_date=day)
    value = 0
    held = [each for each in book.house.values() if each.kind == AccountKind.INVENTORY and each.asset != USD]
    for account in sorted(held, key=lambda each: each.asset):
        units, bill = account.balance, ctx.bill(account.asset)
        if not units:
            continue
        if ctx.market.matures_at(bill) <= at:
            post_signed(book, account, book.internal_account(AccountKind.CUSTODIAN, account.asset), amount=units)
            par = cents_for(units, PRICE_PAR_MICROS)
            post_signed(book, book.internal_account(AccountKind.RESERVE), inventory, amount=par)
            position = InventoryPosition(
                customer_id=book.customer_id,
                closed_on=day,
                cusip=bill.cusip,
                units=0,
                mark_micros=PRICE_PAR_MICROS,
                redeemed=units,
            )
        else:
            mark = ctx.market.mark(bill, at)
            value += cents_for(units, mark)
            position = InventoryPosition(
                customer_id=book.customer_id, closed_on=day, cusip=bill.cusip, units=units, mark_micros=mark
            )
        book.draft.add(position)
    gains = book.internal_account(AccountKind.TRADING_GAINS)
    post_signed(book, inventory, gains, amount=inventory.balance + value)
    book.close()
