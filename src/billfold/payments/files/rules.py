"""Closing a file of a rail: it moves nothing, and what was not booked of the file never is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.ledger.commands import (Books, Outcome, book_of)
from billfold.ledger.context import (Context)

if TYPE_CHECKING:
    from billfold.payments.files.commands import CloseRailFile


def close_rail_file(books: Books, cmd: CloseRailFile, ctx: Context) -> Outcome:
    """Schedule the close of the file: whoever books it at this moment finishes first."""
    book_of(books, cmd.customers[0]).schedule(close_job(cmd.rail), cmd.file_id, ctx.now)
    return {"file_id": str(cmd.file_id)}


def close_job(rail: str) -> str:
    """Return the kind of scheduled job that closes a file of a rail."""
    return f"{rail.lower()}.file_close"
