"""Day end of the bank: settlement with dealers, the Treasury and the rails.

Every customer's trades were posted in full against `street` (dealer clearing) and `treasury` in the
customer's own book. Per settlement date and bill the bank settles one block; the difference between
the block and the sum of its trades is posted to `rounding`. Per date and rail it settles what came
in and went out, so that a rail's accounts hold only payments in transit.
"""

from datetime import date
from typing import Final

import msgspec

from billfold.bills.types import BillSettlement
from billfold.events import kinds
from billfold.ledger.book import recording as record
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Account
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind, TradeActivity
from billfold.payments.clearing.types import RailSettlement
from billfold.payments.settlement.commands import CloseBankDay, ReportMoves
from billfold.payments.settlement.types import RailTotals, SettlementBlock
from billfold.platform.errors import InvariantError
from billfold.platform.ids import command_id
from billfold.platform.money import cents_for

BANK_DAY_CLOSED_JOB: Final = "daily-root"
"""The kind of the job that is due when the bank has closed a day: it signs what the bank owed then."""


@decides(ReportMoves)
def report_moves(books: Books, cmd: ReportMoves, ctx: Context) -> Outcome:
    """Raise an event per pocket. Its rows stay as they are: the calendars say on which day they settle."""
    book = book_of(books, cmd.customers[0])
    for each in cmd.pockets:
        payload = kinds.SettlementPayload(pocket_id=each.pocket_id, settlement_date=cmd.day, moved_to=each.moved_to)
        record.event(book, ctx, kinds.SETTLEMENT_MOVED, payload=payload)
    return {"moved": len(cmd.pockets)}


@decides(CloseBankDay)
def close_bank_day(books: Books, cmd: CloseBankDay, ctx: Context) -> Outcome:
    """Post one journal entry per settlement date, and per rail and date; open the next day.

    Days are closed in order. Raises InvariantError if another day is open.
    """
    book = book_of(books, cmd.customers[0])
    if cmd.day != book.business_date:
        raise InvariantError("Days of the bank are closed in order.", day=cmd.day, open=book.business_date)
    for settles_on in sorted({block.settles_on for block in cmd.blocks}):
        book.begin(JournalKind.SETTLEMENT, ctx, settles_on=settles_on, business_date=cmd.day)
        for block in cmd.blocks:
            if block.settles_on == settles_on:
                _settle(book, block, cmd.day)
        book.close()
    for clearing in cmd.clearings:
        _clear(book, ctx, clearing, day=cmd.day)
    book.business_date = ctx.calendars.next_settlement_day(cmd.day)
    book.schedule(BANK_DAY_CLOSED_JOB, command_id("bank-day-closed", cmd.day.isoformat()), ctx.now, of_customer=False)
    return {"settled": len(cmd.blocks), "cleared": len(cmd.clearings)}


def _clear(book: Book, ctx: Context, clearing: RailTotals, day: date) -> None:
    """Settle a rail: the bank receives what came in and pays what went out."""
    entry_no = book.begin(JournalKind.CLEARING, ctx, settles_on=clearing.settles_on, business_date=day)
    rail, reserve = (
        book.internal_account(AccountKind.of_rail(clearing.rail)),
        book.internal_account(AccountKind.RESERVE),
    )
    _move(book, reserve, rail, amount=clearing.inflow)
    _move(book, rail, reserve, amount=clearing.outflow)
    book.close()
    totals = msgspec.structs.asdict(clearing)
    book.draft.add(RailSettlement(customer_id=book.customer_id, entry_no=entry_no, closed_on=day, **totals))


def _settle(book: Book, block: SettlementBlock, day: date) -> None:
    """Return the postings of a block: the sum of the customers' trades against the block's own amount."""
    other = AccountKind.TREASURY if block.side == TradeActivity.MATURITY else AccountKind.STREET
    cash_there, cash_here = book.internal_account(other), book.internal_account(AccountKind.RESERVE)
    bills_there = book.internal_account(other, block.cusip)
    bills_here = book.internal_account(AccountKind.CUSTODIAN, block.cusip)
    cents = cents_for(block.units, block.price_micros)
    difference = block.customers_cents - cents
    rounding = book.internal_account(AccountKind.ROUNDING)
    bought = 1 if block.side == TradeActivity.BUY else -1
    _move(book, cash_there, cash_here, amount=bought * cents)
    _move(book, cash_there, rounding, amount=bought * difference)
    _move(book, bills_here, bills_there, amount=bought * block.units)
    book.draft.add(BillSettlement(closed_on=day, block_cents=cents, **msgspec.structs.asdict(block)))


def _move(book: Book, debit: Account, credit: Account, amount: int) -> None:
    if amount > 0:
        book.post(debit, credit, amount)
    elif amount < 0:
        book.post(credit, debit, -amount)
