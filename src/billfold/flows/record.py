"""How flows tell what happened: trades, activity and events, as rows of the book's draft."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import msgspec

from billfold.flows.draft import as_json

if TYPE_CHECKING:
    from billfold.domain.events import EventKind
    from billfold.flows.book import Book
    from billfold.flows.command import Context
    from billfold.flows.holdings import PocketBook

Payload = TypeVar("Payload", bound=msgspec.Struct)


def trade(
    book: Book,
    pocket: PocketBook,
    ctx: Context,
    *,
    activity: str,
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
    """One trade of one pocket in one bill; bases in cents are those of the units moved."""
    trade_id = ctx.ids.next()
    if pocket.unsettled_until is None or settles_on > pocket.unsettled_until:
        pocket.unsettled_until = settles_on
    rows = book.draft.trades
    no = 1
    if rows:
        last = rows[-1]
        if last[2] == book.journal_no:
            no = last[3] + 1
    rows.append(
        (
            book.customer_id, pocket.pocket_id, book.journal_no, no, trade_id, pocket.partner_id,
            activity, incoming, cusip, units, price_micros, notional, tax_basis, earnings_basis,
            book.booked_at, book.business_date, settles_on, counter_pocket_id, transfer_id,
        )
    )  # fmt: skip
    return trade_id


def activity(
    book: Book,
    pocket: PocketBook,
    *,
    leg_no: int,
    activity_id: UUID,
    transaction_id: UUID,
    type: str,  # noqa: A002 - the field's name on the wire
    direction: str,
    amount: int,
    title: str,
    description: str,
    settles_at: datetime,
    details: dict[str, Any],
    remittance: dict[str, Any] | None = None,
    swept: bool = True,
) -> None:
    """What the customer sees of the leg `leg_no` of the open journal."""
    rows = book.draft.activities
    rows.append(
        (
            book.customer_id, pocket.pocket_id, book.journal_no, leg_no, activity_id,
            transaction_id, pocket.partner_id, type, direction, amount, swept, title, description,
            book.booked_at, book.business_date, settles_at, as_json(details),
            None if remittance is None else as_json(remittance),
        )
    )  # fmt: skip
    # Within a journal they stand in the order of their legs, as the tables give them back.
    at = len(rows) - 1
    while at and rows[at - 1][2] == book.journal_no and rows[at - 1][3] > leg_no:
        rows[at - 1], rows[at] = rows[at], rows[at - 1]
        at -= 1


def event(book: Book, ctx: Context, kind: EventKind[Payload], payload: Payload) -> None:
    """Raise the customer's next event, with a payload of its kind."""
    book.raise_event(ctx.ids.next(), kind.name, as_json(payload), ctx.now)
