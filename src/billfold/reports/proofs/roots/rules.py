"""The event of a daily root, raised at the own customer of every partner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.events import kinds
from billfold.events.payloads import DailyRootPayload
from billfold.ledger.book.recording import event
from billfold.ledger.commands import (Books, Outcome, book_of)
from billfold.ledger.context import (Context)

if TYPE_CHECKING:
    from billfold.reports.proofs.roots.commands import AnnounceRoot


def announce_root(books: Books, cmd: AnnounceRoot, ctx: Context) -> Outcome:
    """Raise the event of a root that was published."""
    payload = DailyRootPayload(day=cmd.day, root=cmd.root)
    event(book_of(books, cmd.customers[0]), ctx, kinds.DAILY_ROOT_PUBLISHED, payload)
    return {"day": cmd.day.isoformat()}
