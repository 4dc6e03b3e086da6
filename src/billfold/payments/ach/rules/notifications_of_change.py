"""Notifications of change: another bank corrects the account of an entry that we originated."""

from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.payments.ach.commands import RecordNoc
from billfold.payments.ach.rules.entries import referenced_entry, update_entry


@decides(RecordNoc)
def record_noc(books: Books, cmd: RecordNoc, ctx: Context) -> Outcome:
    """Record the correction with its entry."""
    book = book_of(books, cmd.customers[0])
    entry = referenced_entry(book, cmd.ach_id)
    update_entry(book, entry, ctx, change_code=cmd.code, corrected=cmd.corrected)
    counterparty_id = None if entry.counterparty_id is None else str(entry.counterparty_id)
    return {"counterparty_id": counterparty_id, "ach_id": str(cmd.ach_id), "code": cmd.code, "corrected": cmd.corrected}
