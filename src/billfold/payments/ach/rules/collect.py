"""Settlement of an originated debit: its money is booked, and held until most returns have arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.accounts.pockets.types import Hold
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import PocketStatus
from billfold.payments.ach.rules.entries import book_entry, referenced_entry, update_entry
from billfold.payments.ach.types import AchStatus
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import PocketBook
    from billfold.payments.ach.commands import CollectAch
    from billfold.payments.ach.types import AchEntry


def collect_ach(books: Books, cmd: CollectAch, ctx: Context) -> Outcome:
    """Book the money of a debit and invest it, unless the debit was returned before it settled.

    If the pocket was closed meanwhile, nothing is booked: the outcome is NO_POCKET, and the caller
    holds the money in suspense.
    """
    book = book_of(books, cmd.customers[0])
    entry = referenced_entry(book, cmd.ach_id)
    if entry.pocket_id is None:
        raise NotFound
    if entry.status not in {AchStatus.IN_TRANSIT, AchStatus.PROCESSED} or entry.entry_no is not None:
        return {"status": entry.status}
    pocket = book.pockets[entry.pocket_id]
    if pocket.status == PocketStatus.CLOSED:
        return {"status": "NO_POCKET", "amount": entry.amount}
    booked = book_entry(book, pocket, entry, ctx=ctx, settles_at=entry.settled_at)
    _place_hold(book, pocket, entry)
    update_entry(book, entry, ctx, entry_no=booked.entry_no)
    return {"status": "BOOKED"}


def _place_hold(book: Book, pocket: PocketBook, entry: AchEntry) -> None:
    """The hold has the id of the entry, so that a return finds it."""
    until = entry.held_until
    if until is not None and until > book.booked_at:
        pocket.liens.append((entry.amount, until))
        book.draft.add(
            Hold(
                customer_id=book.customer_id,
                hold_id=entry.ach_id,
                pocket_id=pocket.pocket_id,
                amount=entry.amount,
                until=until,
                cause="ACH",
            )
        )
