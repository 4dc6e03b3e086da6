"""Cash becomes bills: the on-the-run bill of a strategy, at the ask, settling T+1."""

from billfold.bills.rules import lots
from billfold.bills.types import Bill
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, TradeActivity
from billfold.platform.money import cents_for
from billfold.treasury.rules.unsettled import take_unsettled


def plan_purchase(pocket: PocketBook, ctx: Context, *, weeks: int | None = None) -> tuple[Bill, int, int] | None:
    """Return the bill to buy with the pocket's free cash, its price and the units; None if nothing is bought.

    Outside investing hours and without current market data the cash becomes due work for the
    next opening; cash below the price of one bill stays, and so does matured money of a pocket
    without reinvestment.
    """
    free = pocket.cash.balance - pocket.cash.reserved - pocket.uninvested
    if free <= 0:
        pocket.invest_at = None
        return None
    offer = ctx.find_offer(weeks or pocket.deposit_weeks) if ctx.investing else None
    if offer is None:
        # The opening may have been canceled: a day that was to be open has been declared closed.
        if pocket.invest_at is None or pocket.invest_at <= ctx.now:
            pocket.invest_at = ctx.calendars.next_open(ctx.now)
        return None
    pocket.invest_at = None
    units = lots.affordable_units(free, offer[1])
    return (*offer, units) if units else None


def invest(book: Book, pocket: PocketBook, ctx: Context, *, weeks: int | None = None) -> None:
    """Buy what `plan_purchase` returns, in the open journal entry."""
    purchase = plan_purchase(pocket, ctx, weeks=weeks)
    if purchase is None:
        return
    bill, price, units = purchase
    cost = cents_for(units, price)
    # The bill settles no earlier than the cash does.
    take_unsettled(book, pocket, ctx, cost)
    book.post(pocket.cash, book.internal_account(AccountKind.STREET), cost)
    lot = book.lot(pocket, bill.cusip, book.business_date, maturity=bill.maturity)
    book.post(book.internal_account(AccountKind.STREET, bill.cusip), lot, units)
    book.lot_in(pocket, lot, cost, earnings=cost)
    recording.trade(
        book,
        pocket,
        ctx,
        activity=TradeActivity.BUY,
        incoming=True,
        cusip=bill.cusip,
        units=units,
        price_micros=price,
        notional=cost,
        tax_basis=cost,
        earnings_basis=cost,
        settles_on=ctx.settles_on,
    )
