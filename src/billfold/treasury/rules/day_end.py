"""A pocket's end of day: movements are kept as a snapshot, and the fee for holding accrues.

An untouched pocket costs nothing: a snapshot is written only for dates on which the pocket
moved, and the fee of the days in between is computed when the pocket moves or is charged.
"""

from datetime import date, timedelta

from billfold.bills.rules import fees
from billfold.bills.rules.fees import ACCRUED_UNITS_PER_CENT
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook, to_json
from billfold.ledger.book.postings import PocketSnapshot
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, TransactionType
from billfold.treasury.rules import liquidate, unsettled

ONE_DAY = timedelta(days=1)


def roll_business_day(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Call before money moves in a pocket: closes its earlier day and accrues up to this one.

    The fee follows calendar days: money that arrives on a Saturday, whose business day is Monday, pays
    for Saturday and Sunday.
    """
    book.touch(pocket)
    accrue(pocket, ctx, through=ctx.today - ONE_DAY)
    today = max(book.business_date, ctx.business_date)
    if pocket.last_activity_date == today:
        return
    close_day(book, pocket)
    if pocket.next_fee_date <= today and not (pocket.lots or pocket.cash.balance or pocket.fee_accrued):
        # No fee accrues for months without a holding.
        pocket.next_fee_date = fees.fee_charge_date(today, ctx.calendars)
    pocket.last_activity_date = today


def close_day(book: Book, pocket: PocketBook) -> None:
    """Keep the end-of-day state of the date on which the pocket last moved."""
    if pocket.last_activity_date is None:
        return
    book.touch(pocket)
    book.draft.add(
        PocketSnapshot(
            customer_id=book.customer_id,
            pocket_id=pocket.pocket_id,
            business_date=pocket.last_activity_date,
            entry_no=book.entry_no,
            cash=pocket.cash.balance,
            positions=to_json(pocket.positions()),
            earnings_basis=pocket.earnings_basis(),
            inflow=pocket.inflow,
            outflow=pocket.outflow,
            fees=pocket.fees,
            realised=pocket.realised,
        )
    )
    pocket.last_activity_date = None


def accrue(pocket: PocketBook, ctx: Context, *, through: date) -> None:
    """Add the fee of every calendar day after `accrued_through` up to `through`."""
    if pocket.accrued_through >= through:
        return
    if pocket.lots or pocket.cash.balance:
        pocket.fee_accrued += fees.accrue_days(
            pocket.positions(),
            pocket.cash.balance,
            after=pocket.accrued_through,
            through=through,
            market=ctx.market,
            bps=ctx.terms.aum_fee_bps,
        )
    pocket.accrued_through = through


def charge_fee(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Take the accrued whole cents in the open journal entry; the fraction is carried forward.

    Residual cash pays first, else bills are sold. What the pocket cannot pay stays accrued, and so does the
    part that would need a sale of bills without current market data.
    """
    whole, _ = fees.split_accrued_fee(pocket.fee_accrued)
    has_prices = ctx.market.is_current(ctx.now)
    due = min(whole, (liquidate.liquidation_value if has_prices else unsettled.free_cash)(pocket, ctx.same_day))
    if due <= 0:
        return
    liquidate.raise_cash(book, pocket, ctx, need=due, terms=ctx.same_day)
    posting_no = pay_fee(book, pocket, ctx, due)
    pocket.fee_accrued -= due * ACCRUED_UNITS_PER_CENT
    group = ctx.ids.next_group()
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.FEE,
        direction=Direction.DEBIT,
        amount=due,
        title="AUM fee",
        # On the first business day of a month some days of this month may have accrued, too.
        description=f"Fee for {min(pocket.accrued_through, pocket.next_fee_date.replace(day=1) - ONE_DAY):%B %Y}",
        settles_at=book.booked_at,
        details={"fee_type": "AUM_FEE", "related_transaction_id": None},
    )


def pay_fee(book: Book, pocket: PocketBook, ctx: Context, cents: int) -> int:
    """Pay a fee from cash through the bank account, in the open journal entry; return the posting's number."""
    unsettled.pay_from_cash(book, pocket, ctx, cents)
    pocket.fees += cents
    return book.post(pocket.bank, book.internal_account(AccountKind.FEES), cents)
