"""Closing a file of a rail: it moves nothing, and lines that were not booked never are."""

from uuid import UUID

from billfold.ledger.commands import AuditedAction, Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context


class CloseRailFile(Command, frozen=True, kw_only=True):
    """Complete an inbound file with lines that cannot be booked; `reason` states how those were handled."""

    audit = AuditedAction("files", "closed", fields=("file_id", "reason"))
    file_id: UUID
    rail: str
    reason: str


@decides(CloseRailFile)
def close_rail_file(books: Books, cmd: CloseRailFile, ctx: Context) -> Outcome:
    """Schedule the close of the file: a process that books it at this moment finishes first."""
    book_of(books, cmd.customers[0]).schedule(close_job(cmd.rail), cmd.file_id, ctx.now)
    return {"file_id": str(cmd.file_id)}


def close_job(rail: str) -> str:
    """Return the kind of scheduled job that closes a file of a rail."""
    return f"{rail.lower()}.file_close"
