"""Due work of a pocket: closing days, charging fees, maturities, and investing waiting cash.

Anything that must happen later has a due instant. A customer is brought up to date before
its next command is decided, so a late worker can never cause a wrong decision.
"""

from collections.abc import Callable
from datetime import datetime

from billfold.bills.rules import fees
from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import BANK_ROLE, Book, fee_due, refresh_due
from billfold.ledger.book.draft import Lot, PocketBook
from billfold.ledger.commands import Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind, TradeActivity
from billfold.platform.calendars import Calendars
from billfold.platform.ids import command_id
from billfold.platform.money import PRICE_PAR_MICROS, cents_for
from billfold.treasury.rules.day_end import charge_fee, close_day, roll_business_day
from billfold.treasury.rules.invest import invest, plan_purchase
from billfold.treasury.rules.overdraft import recover_overdraft_from_cash


class InvestWaitingCash(Command, frozen=True, kw_only=True):
    """Invest cash that waits for the market to open, ahead of that instant. Leaves no command row."""

    is_recorded = False


class RescheduleDueWork(Command, frozen=True, kw_only=True):
    """Recompute when work of these customers is due by the current calendars. Leaves no command row."""

    is_recorded = False


def mature_lots(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Redeem every lot whose maturity has come and reinvest the proceeds, in one journal entry.

    A pocket without a reinvestment strategy keeps the proceeds as uninvested cash.
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
    trade_id = recording.trade(
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
    recording.event(book, ctx, kinds.TRADE_MATURITY, payload=payload)


Step = Callable[["Book", "PocketBook", "Context"], None]


def catch_up(book: Book, ctx: Context) -> int:
    """Do everything that was due by `ctx.now`, in order; return the number of things done.

    Each is booked at its due instant and has an id derived from it, so it does not matter which
    process catches up or when. The bank closes its own days by a command,
    because it needs to see all trades.
    """
    done = 0
    if book.role == BANK_ROLE:
        return done
    while True:
        due = refresh_due(book, ctx.calendars)
        if due is None or due > ctx.now:
            if not done and due != book.due_at:
                # The calendar has changed since the head was written: update its due instant.
                book.draft.touched_pockets.update(book.pockets)
            return done
        then = ctx.at(max(due, book.booked_at))
        for pocket in sorted(book.pockets.values(), key=lambda p: p.pocket_id.bytes):
            if pocket.due_at is not None and pocket.due_at <= due:
                _run_due_work(book, pocket, then, due=due)
                done += 1


def _run_due_work(book: Book, pocket: PocketBook, ctx: Context, due: datetime) -> None:
    for name, is_due, step in _STEPS:
        if is_due(pocket, ctx.calendars, due):
            ctx.serve(command_id(f"due:{name}:{due.isoformat()}", pocket.pocket_id))
            book.touch(pocket)
            step(book, pocket, ctx)
            book.draft.happened[name] = book.draft.happened.get(name, 0) + 1
    book.touch(pocket)


def _charge_fee(book: Book, pocket: PocketBook, ctx: Context) -> None:
    if pocket.lots or pocket.cash.balance:
        roll_business_day(book, pocket, ctx)
        book.begin(JournalKind.FEE, ctx, settles_on=ctx.business_date)
        charge_fee(book, pocket, ctx)
        book.close()
    pocket.next_fee_date = fees.fee_charge_date(pocket.next_fee_date, ctx.calendars)


@decides(InvestWaitingCash)
def invest_waiting_cash(books: Books, cmd: InvestWaitingCash, ctx: Context) -> Outcome:
    """Invest cash that waits for an opening, now that there is market data."""
    book = book_of(books, cmd.customers[0])
    for pocket in book.pockets.values():
        if pocket.invest_at is not None:
            _invest_cash(book, pocket, ctx)
    return {}


@decides(RescheduleDueWork)
def reschedule_due_work(books: Books, cmd: RescheduleDueWork, ctx: Context) -> Outcome:
    """Update the due instants if the calendars have changed since they were written."""
    for customer_id in cmd.customers:
        book = book_of(books, customer_id)
        if refresh_due(book, ctx.calendars) != book.due_at:
            book.draft.touched_pockets.update(book.pockets)
    return {}


def _invest_cash(book: Book, pocket: PocketBook, ctx: Context) -> None:
    book.touch(pocket)
    if plan_purchase(pocket, ctx) is None:
        return
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.INVEST, ctx, settles_on=ctx.settles_on)
    invest(book, pocket, ctx)
    book.close()


def _end_day(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Close the day on which the pocket moved; emptied lots of matured bills leave the book."""
    matures_at = ctx.calendars.matures_at
    book.retire_lots(pocket, [lot for lot in pocket.emptied if matures_at(lot.maturity) <= ctx.now])
    close_day(book, pocket)


# In the order in which simultaneous steps happen.
_STEPS: tuple[tuple[str, Callable[[PocketBook, Calendars, datetime], bool], Step], ...] = (
    (
        "close",
        lambda p, c, due: p.last_activity_date is not None and c.closes_at(p.last_activity_date) <= due,
        _end_day,
    ),
    ("charge", lambda p, c, due: fee_due(p, c) <= due, _charge_fee),
    ("mature", lambda p, c, due: bool(p.lots) and c.matures_at(p.lots[0].maturity) <= due, mature_lots),
    ("invest", lambda p, _, due: p.invest_at is not None and p.invest_at <= due, _invest_cash),
)
