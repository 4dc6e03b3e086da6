"""The day end of the desk: the inventory is valued at the mark, and the result is posted."""

from datetime import date

from billfold.ledger.book.book import USD, Book
from billfold.ledger.book.recording import post_signed
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind
from billfold.platform.money import PRICE_PAR_MICROS, cents_for
from billfold.trading.rules.settlements import expect_redemption
from billfold.trading.types import InventoryPosition


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
            # The custodian holds and pays them until it confirms the redemption.
            due = book.internal_account(AccountKind.REDEMPTIONS, account.asset)
            post_signed(book, account, due, amount=units)
            par = cents_for(units, PRICE_PAR_MICROS)
            post_signed(book, book.internal_account(AccountKind.REDEMPTIONS), inventory, amount=par)
            expect_redemption(book, ctx, bill.cusip, units)
            kept, mark = 0, PRICE_PAR_MICROS
        else:
            kept, mark = units, ctx.market.mark(bill, at)
            value += cents_for(units, mark)
        position = InventoryPosition(
            customer_id=book.customer_id,
            closed_on=day,
            cusip=bill.cusip,
            units=kept,
            mark_micros=mark,
            redeemed=units - kept,
        )
        book.draft.add(position)
    gains = book.internal_account(AccountKind.TRADING_GAINS)
    post_signed(book, inventory, gains, amount=inventory.balance + value)
    book.close()
