"""The event of a daily root, raised at the own customer of every partner."""

from datetime import date

from billfold.events import kinds
from billfold.events.kinds import DailyRootPayload
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context


class AnnounceRoot(Command, frozen=True, kw_only=True):
    """Raise the event of a root that was published."""

    needs_identifiers = False

    day: date
    root: str


@decides(AnnounceRoot)
def announce_root(books: Books, cmd: AnnounceRoot, ctx: Context) -> Outcome:
    """Raise the event of a root that was published."""
    payload = DailyRootPayload(day=cmd.day, root=cmd.root)
    event(book_of(books, cmd.customers[0]), ctx, kinds.DAILY_ROOT_PUBLISHED, payload)
    return {"day": cmd.day.isoformat()}
