"""Changes the notes of objects that exist."""

from billfold.accounts.notes.commands import Annotate
from billfold.ledger.book.notes import attach_note
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context


@decides(Annotate)
def annotate(books: Books, cmd: Annotate, ctx: Context) -> Outcome:
    """Change the note. Refuses: external-id-taken."""
    assert cmd.noted is not None
    assert cmd.attached is not None
    book = book_of(books, cmd.customers[0])
    attach_note(book, cmd.kind, cmd.noted, note=cmd.attached, ctx=ctx, is_new=False)
    return {"note_id": str(cmd.noted)}
