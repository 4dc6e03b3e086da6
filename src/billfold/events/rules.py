"""Raises events of changes that were not commands."""

from billfold.events.commands import ReportChange
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context


@decides(ReportChange)
def report_change(books: Books, cmd: ReportChange, ctx: Context) -> Outcome:
    """Raise the event."""
    book_of(books, cmd.customers[0]).raise_event(ctx.ids.next(), cmd.event_kind, cmd.payload, now=ctx.now)
    return {"event_kind": cmd.event_kind}
