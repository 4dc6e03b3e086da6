"""The events of reports, raised at the customer who owns the report."""

from datetime import date
from uuid import UUID

from msgspec import UNSET

from billfold.events import kinds
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context


class AnnounceRoot(Command, frozen=True, kw_only=True):
    """Raise the event of a root that was published."""

    day: date
    root: str


@decides(AnnounceRoot)
def announce_root(books: Books, cmd: AnnounceRoot, ctx: Context) -> Outcome:
    """Raise the event of a root that was published."""
    payload = kinds.DailyRootPayload(day=cmd.day, root=cmd.root)
    event(book_of(books, cmd.customers[0]), ctx, kinds.DAILY_ROOT_PUBLISHED, payload)
    return {"day": cmd.day.isoformat()}


class FinishReport(Command, frozen=True, kw_only=True):
    """Raise the event of a batch of formats, whose id is the key. Without a report, it failed."""

    report_request_id: UUID
    report_id: UUID | None = None


@decides(FinishReport)
def finish_report(books: Books, cmd: FinishReport, ctx: Context) -> Outcome:
    """Raise the event of a report that was completed or failed."""
    kind = kinds.REPORT_FAILED if cmd.report_id is None else kinds.REPORT_COMPLETED
    payload = kinds.ReportPayload(report_request_id=cmd.report_request_id, report_id=cmd.report_id or UNSET)
    event(book_of(books, cmd.customers[0]), ctx, kind, payload)
    return {"report_request_id": str(cmd.report_request_id)}
