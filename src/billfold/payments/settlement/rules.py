"""The house closes its day: it settles with the street, the Treasury and the rails.

Every customer's trades were posted in full against `street` and `treasury` in his own
books. Per settlement date and bill the house pays and receives one block; the sum of all
roundings between the block and its parts lands in `rounding`. Per date and rail it is paid what
came in and pays what went out, so that only payments still under way are left on a rail.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import msgspec

from billfold.bills.types import BillSettlement
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import AccountKind, JournalKind, TradeActivity
from billfold.payments.clearing.types import RailSettlement
from billfold.platform.errors import InvariantError
from billfold.platform.money import cents_for

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import Account
    from billfold.payments.settlement.commands import CloseHouseDay


class SettlementBlock(msgspec.Struct, frozen=True):
    """All trades of one bill at one price on one side that settle together."""

    settles_on: date
    cusip: str
    price_micros: int
    side: str  # BUY, SELL or MATURITY
    units: int
    customers_cents: int


class RailTotals(msgspec.Struct, frozen=True):
    """What a rail settles on one date: cents that came in by it and that went out."""

    settles_on: date
    rail: str  # "ACH" or "WIRE"
    came_in: int
    went_out: int


def close_house_day(books: Books, cmd: CloseHouseDay, ctx: Context) -> Outcome:
    """Post one journal per settlement date, and per rail and date; open the next day.

    Days are closed in order. Broken when another day is open.
    """
    book = book_of(books, cmd.customers[0])
    if cmd.day != book.business_date:
        raise InvariantError("The house closes its days in order.", day=cmd.day, open=book.business_date)
    for settles_on in sorted({block.settles_on for block in cmd.blocks}):
        book.begin(JournalKind.SETTLEMENT, ctx, settles_on=settles_on, business_date=cmd.day)
        for block in cmd.blocks:
            if block.settles_on == settles_on:
                _settle(book, block, cmd.day)
        book.close()
    for clearing in cmd.clearings:
        _clear(book, ctx, clearing, cmd.day)
    book.business_date = ctx.calendars.next_settlement_day(cmd.day)
    return {"settled": len(cmd.blocks), "cleared": len(cmd.clearings)}


def _clear(book: Book, ctx: Context, clearing: RailTotals, day: date) -> None:
    """The bank of the rail pays the house what came in, and takes what went out."""
    journal_no = book.begin(JournalKind.CLEARING, ctx, settles_on=clearing.settles_on, business_date=day)
    rail, reserve = (book.house_account(AccountKind.of_rail(clearing.rail)), book.house_account(AccountKind.RESERVE))
    _move(book, reserve, rail, clearing.came_in)
    _move(book, rail, reserve, clearing.went_out)
    book.close()
    book.draft.add(
        RailSettlement(
            customer_id=book.customer_id,
            journal_no=journal_no,
            rail=clearing.rail,
            settles_on=clearing.settles_on,
            closed_on=day,
            came_in=clearing.came_in,
            went_out=clearing.went_out,
        )
    )


def _settle(book: Book, block: SettlementBlock, day: date) -> None:
    """Customers' side is what they posted; the block's side is what the house really moves."""
    other = AccountKind.TREASURY if block.side == TradeActivity.MATURITY else AccountKind.STREET
    cash_there, cash_here = book.house_account(other), book.house_account(AccountKind.RESERVE)
    bills_there = book.house_account(other, block.cusip)
    bills_here = book.house_account(AccountKind.CUSTODIAN, block.cusip)
    cents = cents_for(block.units, block.price_micros)
    difference = block.customers_cents - cents
    rounding = book.house_account(AccountKind.ROUNDING)
    if block.side == TradeActivity.BUY:
        _move(book, cash_there, cash_here, cents)
        _move(book, cash_there, rounding, difference)
        _move(book, bills_here, bills_there, block.units)
    else:
        _move(book, cash_here, cash_there, cents)
        _move(book, rounding, cash_there, difference)
        _move(book, bills_there, bills_here, block.units)
    book.draft.add(
        BillSettlement(
            settles_on=block.settles_on,
            cusip=block.cusip,
            price_micros=block.price_micros,
            side=block.side,
            closed_on=day,
            units=block.units,
            customers_cents=block.customers_cents,
            block_cents=cents,
        )
    )


def _move(book: Book, debit: Account, credit: Account, amount: int) -> None:
    if amount > 0:
        book.post(debit, credit, amount)
    elif amount < 0:
        book.post(credit, debit, -amount)
