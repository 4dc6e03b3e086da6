"""Records trades, transactions and events as rows of the book's draft."""

from datetime import date, datetime
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Account, PocketBook, to_json
from billfold.ledger.book.postings import TradeEntry, TransactionEntry
from billfold.ledger.context import Context
from billfold.ledger.types import Direction, EventKind, TradeActivity, TransactionType
from billfold.platform.ids import at_place, member_of

Payload = TypeVar("Payload", bound=msgspec.Struct)


def post_signed(book: Book, debit: Account, credit: Account, amount: int) -> None:
    """Post an amount, the other way if it is negative; zero is not posted."""
    if amount > 0:
        book.post(debit, credit, amount)
    elif amount < 0:
        book.post(credit, debit, -amount)


def trade(
    book: Book,
    pocket: PocketBook,
    ctx: Context,
    *,
    activity: TradeActivity,
    incoming: bool,
    cusip: str,
    units: int,
    price_micros: int,
    notional: int,
    tax_basis: int,
    earnings_basis: int,
    settles_on: date,
    counter_pocket_id: UUID | None = None,
    transfer_id: UUID | None = None,
) -> UUID:
    """Record one trade of one pocket in one bill; bases in cents are those of the units moved."""
    if pocket.unsettled_until is None or settles_on > pocket.unsettled_until:
        pocket.unsettled_until = settles_on
    rows = book.draft.rows_of(TradeEntry)
    no = rows[-1].trade_no + 1 if rows and rows[-1].entry_no == book.entry_no else 1
    trade_id = at_place(ctx.ids.next(), book.entry_no, no)
    book.draft.add(
        TradeEntry(
            customer_id=book.customer_id,
            pocket_id=pocket.pocket_id,
            entry_no=book.entry_no,
            trade_no=no,
            trade_id=trade_id,
            partner_id=pocket.partner_id,
            activity=activity,
            incoming=incoming,
            cusip=cusip,
            units=units,
            price_micros=price_micros,
            notional=notional,
            tax_basis=tax_basis,
            earnings_basis=earnings_basis,
            traded_at=book.booked_at,
            book_date=book.business_date,
            settles_on=settles_on,
            counter_pocket_id=counter_pocket_id,
            transfer_id=transfer_id,
        )
    )
    return trade_id


_place = attrgetter("entry_no", "posting_no")


def transaction(
    book: Book,
    pocket: PocketBook,
    *,
    posting_no: int,
    group: UUID,
    place: int = 1,
    type: TransactionType,  # noqa: A002 - the field's name on the wire
    direction: Direction,
    amount: int,
    title: str,
    description: str,
    settles_at: datetime,
    details: dict[str, Any],
    remittance: dict[str, Any] | None = None,
    swept: bool = True,
) -> None:
    """Record a posting of the open entry as the customer's transaction, the `place`-th of its group.

    Without `swept` it did not pass through the bank account: cash is reserved for a payment by card.
    """
    # Within a journal entry they are in the order of its postings, as they are read from the tables.
    book.draft.add_in_order(
        TransactionEntry(
            customer_id=book.customer_id,
            pocket_id=pocket.pocket_id,
            entry_no=book.entry_no,
            posting_no=posting_no,
            activity_id=member_of(group, place),
            transaction_id=group,
            partner_id=pocket.partner_id,
            type=type,
            direction=direction,
            amount=amount,
            swept=swept,
            title=title,
            description=description,
            booked_at=book.booked_at,
            business_date=book.business_date,
            settles_at=settles_at,
            details=to_json(details),
            remittance=None if remittance is None else to_json(remittance),
        ),
        _place,
    )


def event(book: Book, ctx: Context, kind: EventKind[Payload], payload: Payload) -> None:
    """Raise the customer's next event, with a payload of its kind."""
    book.raise_event(ctx.ids.next(), kind.name, to_json(payload), now=ctx.now)
