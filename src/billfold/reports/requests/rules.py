"""Events of reports, raised at the customer whose report it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from billfold.events import kinds
from billfold.events.payloads import ReportPayload
from billfold.ledger.book.recording import event
from billfold.ledger.commands import (Books, Outcome, book_of)
from billfold.ledger.context import (Context)

if TYPE_CHECKING:
    from billfold.reports.requests.commands import FinishReport


def finish_report(books: Books, cmd: FinishReport, ctx: Context) -> Outcome:
    """Raise the event of a report that was completed, or that could not be made."""
    kind = kinds.REPORT_FAILED if cmd.report_id is None else kinds.REPORT_COMPLETED
    payload = ReportPayload(report_request_id=cmd.report_request_id, report_id=cmd.report_id or UNSET)
    event(book_of(books, cmd.customers[0]), ctx, kind, payload)
    return {"report_request_id": str(cmd.report_request_id)}
