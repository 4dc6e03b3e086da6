"""When something must happen in a book by itself: the due instants of its pockets."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from billfold.ledger.types import PocketStatus
from billfold.platform.calendars import Calendars

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import PocketBook

BANK_ROLE = "house"
"""The role of the one customer that is the bank itself."""


def pocket_due(pocket: PocketBook, calendars: Calendars) -> datetime | None:
    """The next instant at which something must happen in this pocket, if any."""
    if pocket.status == PocketStatus.CLOSED and pocket.last_activity_date is None:
        return None
    first: datetime | None = pocket.invest_at
    if pocket.last_activity_date is not None:
        at = calendars.closes_at(pocket.last_activity_date)
        first = at if first is None or at < first else first
    if pocket.lots:
        at = calendars.matures_at(pocket.lots[0].maturity)
        first = at if first is None or at < first else first
    if pocket.lots or pocket.cash.balance or pocket.fee_accrued:
        at = calendars.opens_at(pocket.next_fee_date)
        first = at if first is None or at < first else first
    return first


def refresh_due(book: Book, calendars: Calendars) -> datetime | None:
    """Work out the due instants of pockets that changed, and the book's first.

    The bank itself has no pockets: its day is due to be closed when business of that day is over.
    """
    if book.role == BANK_ROLE:
        return calendars.closes_at(book.business_date)
    for pocket_id in book.draft.touched_pockets:
        pocket = book.pockets.get(pocket_id)
        if pocket is not None:
            pocket.due_at = pocket_due(pocket, calendars)
    dues = [p.due_at for p in book.pockets.values() if p.due_at is not None]
    return min(dues) if dues else None
