"""Day end of the bank: settlement with dealers, the Treasury and the rails.

Every customer's trades were posted in full against `street` (dealer clearing) and `treasury` in the
customer's own book. Per settlement date and bill the bank settles one block; the difference between
the block and the sum of its trades is posted to `rounding`. Per date and rail it settles incoming and
outgoing payments, so that a rail's accounts hold only payments in transit.

A bank with dealers meets customers' trades from its inventory on the day of the trades; what dealers executed and what
matures is posted when the custodian confirms it (`trading`). A bank without dealers has no inventory: on the settlement
date a dealer is assumed to have filled every block at its price, against `reserve` and `custodian`.
"""

from datetime import date, datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.bills.types import BillSettlement
from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.recording import post_signed
from billfold.ledger.commands import Books, Command, Outcome, Reference, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind, TradeActivity
from billfold.platform.database.rows import Row
from billfold.platform.errors import InvariantError
from billfold.platform.ids import command_id
from billfold.platform.money import cents_for
from billfold.trading.rules.day_end import value_inventory
from billfold.trading.rules.settlements import expect_redemption

RAILS = ("ACH", "WIRE", "CARD", "CRYPTO")


class RailSettlement(Row, frozen=True, kw_only=True):
    """The settlement of one rail on one date, with its journal entry."""

    table = "clearing"

    customer_id: UUID
    entry_no: int
    rail: str
    settles_on: date
    closed_on: date
    inflow: int
    outflow: int


class ClearingTotals(NamedTuple):
    """One rail on one date, in cents: the amounts moved, and the settled part."""

    rail: str
    settles_on: date
    payments: int
    inflow: int
    outflow: int
    settled_in: int
    settled_out: int

    @property
    def unsettled_in(self) -> int:
        """Incoming cents that are not settled."""
        return self.inflow - self.settled_in

    @property
    def unsettled_out(self) -> int:
        """Outgoing cents that are not settled."""
        return self.outflow - self.settled_out


class OpenPayment(NamedTuple):
    """A payment that is not settled yet. `customer_id` is the bank's own customer for payments of the bank."""

    rail: str
    settles_at: datetime
    direction: str
    amount: int
    customer_id: UUID
    entry_no: int
    activity_id: UUID | None


class SettlementBlock(msgspec.Struct, frozen=True):
    """All trades of one bill at one price and side with one settlement date."""

    settles_on: date
    cusip: str
    price_micros: int
    side: str  # BUY, SELL or MATURITY
    units: int
    customers_cents: int


class RailTotals(msgspec.Struct, frozen=True):
    """The settlement of a rail on one date: incoming and outgoing cents."""

    settles_on: date
    rail: str  # "ACH", "WIRE", "CARD" or "CRYPTO"
    inflow: int
    outflow: int


class MovedPocket(msgspec.Struct, frozen=True):
    """A pocket with transactions that settle on another day."""

    pocket_id: UUID
    moved_to: date


class CloseBankDay(Command, frozen=True, kw_only=True):
    """Settle these blocks and rails, which are everything due by `day` and not yet settled.

    Customers with work due by the end of `day` have been brought up to date before, except those that are set
    apart: `apart_since` is the earliest day on which work of these was due. With `from_inventory` purchases and sales
    are those booked by `day`, met from the bank's inventory; maturities are paid when the custodian confirms them.
    `references` are the redemptions of bills that may have matured.
    """

    reference_kinds = (Reference.SETTLEMENT_INSTRUCTION,)
    former_names = ("CloseHouseDay",)

    day: date
    blocks: tuple[SettlementBlock, ...]
    clearings: tuple[RailTotals, ...] = ()
    apart_since: date | None = None
    from_inventory: bool = False


class ReportMoves(Command, frozen=True, kw_only=True):
    """Notify a customer of the new settlement day of transactions due on `day`, after the calendars changed."""

    day: date
    pockets: tuple[MovedPocket, ...]


BANK_DAY_CLOSED_JOB: Final = "daily-root"
"""The kind of the job due when the bank has closed a day, which signs the bank's liabilities of that day."""


@decides(ReportMoves)
def report_moves(books: Books, cmd: ReportMoves, ctx: Context) -> Outcome:
    """Raise an event per pocket. Its rows are not changed: the calendars determine the settlement day."""
    book = book_of(books, cmd.customers[0])
    for each in cmd.pockets:
        payload = kinds.SettlementPayload(pocket_id=each.pocket_id, settlement_date=cmd.day, moved_to=each.moved_to)
        recording.event(book, ctx, kinds.SETTLEMENT_MOVED, payload=payload)
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
                _settle_block(book, block, cmd.day, has_dealers=cmd.from_inventory)
        book.close()
    matured = [block for block in cmd.blocks if cmd.from_inventory and block.side == TradeActivity.MATURITY]
    for block in matured:
        expect_redemption(book, ctx, block.cusip, block.units)
    value_inventory(book, ctx, cmd.day)
    for clearing in cmd.clearings:
        _settle_rail(book, ctx, clearing, day=cmd.day)
    book.business_date = ctx.calendars.next_settlement_day(cmd.day)
    book.schedule(BANK_DAY_CLOSED_JOB, command_id("bank-day-closed", cmd.day.isoformat()), ctx.now, of_customer=False)
    apart = {"apart_since": cmd.apart_since} if cmd.apart_since else {}
    return {"settled": len(cmd.blocks), "cleared": len(cmd.clearings), **apart}


def _settle_rail(book: Book, ctx: Context, clearing: RailTotals, day: date) -> None:
    """Settle a rail: the bank receives incoming money and pays outgoing money."""
    entry_no = book.begin(JournalKind.CLEARING, ctx, settles_on=clearing.settles_on, business_date=day)
    rail, reserve = (
        book.internal_account(AccountKind.of_rail(clearing.rail)),
        book.internal_account(AccountKind.RESERVE),
    )
    post_signed(book, reserve, rail, amount=clearing.inflow)
    post_signed(book, rail, reserve, amount=clearing.outflow)
    book.close()
    totals = msgspec.structs.asdict(clearing)
    book.draft.add(RailSettlement(customer_id=book.customer_id, entry_no=entry_no, closed_on=day, **totals))


def _settle_block(book: Book, block: SettlementBlock, day: date, *, has_dealers: bool) -> None:
    """Post a block: the sum of the customers' trades against the block's own amount."""
    matured = block.side == TradeActivity.MATURITY
    from_inventory = has_dealers and not matured
    other = AccountKind.TREASURY if matured else AccountKind.STREET
    own = AccountKind.REDEMPTIONS if matured else AccountKind.INVENTORY
    cash_kind = own if has_dealers else AccountKind.RESERVE
    bills_kind = own if has_dealers else AccountKind.CUSTODIAN
    cash_there, cash_here = book.internal_account(other), book.internal_account(cash_kind)
    bills_there, bills_here = (book.internal_account(kind, block.cusip) for kind in (other, bills_kind))
    cents = cents_for(block.units, block.price_micros)
    difference = block.customers_cents - cents
    rounding = book.internal_account(AccountKind.ROUNDING)
    bought = 1 if block.side == TradeActivity.BUY else -1
    post_signed(book, cash_there, cash_here, amount=bought * cents)
    post_signed(book, cash_there, rounding, amount=bought * difference)
    post_signed(book, bills_here, bills_there, amount=bought * block.units)
    settled = msgspec.structs.asdict(block)
    book.draft.add(BillSettlement(closed_on=day, block_cents=cents, from_inventory=from_inventory, **settled))
