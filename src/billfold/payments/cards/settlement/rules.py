"""Interchange is income of the bank, fees of processor and network are its expense: both settle with the file."""

from datetime import date
from uuid import UUID

from billfold.ledger.commands import Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind


class BookCardSettlement(Command, frozen=True, kw_only=True):
    """Book interchange, negative if more was given back than received, and fees of a file, in cents."""

    needs_identifiers = False

    file_id: UUID
    settles_on: date
    interchange: int
    fees: int


@decides(BookCardSettlement)
def book_settlement(books: Books, cmd: BookCardSettlement, ctx: Context) -> Outcome:
    """Post interchange and fees against the card rail, in the bank's own books."""
    book = book_of(books, cmd.customers[0])
    # It is booked on the open business date of the bank: only the day end moves on to the next.
    entry_no = book.begin(JournalKind.CARD, ctx, settles_on=cmd.settles_on, business_date=book.business_date)
    rail, interchange = book.internal_account(AccountKind.RAIL_CARD), book.internal_account(AccountKind.INTERCHANGE)
    if cmd.interchange > 0:
        book.post(rail, interchange, cmd.interchange)
    elif cmd.interchange < 0:
        book.post(interchange, rail, -cmd.interchange)
    if cmd.fees:
        book.post(book.internal_account(AccountKind.CARD_FEES), rail, cmd.fees)
    book.close()
    return {"file_id": str(cmd.file_id), "journal_no": entry_no}
