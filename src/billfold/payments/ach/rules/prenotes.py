"""Prenotes: entries of no amount, by which a bank verifies that an account exists."""

from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Outcome
from billfold.ledger.context import Context
from billfold.payments.ach.commands import AchStatus, ReceiveAch
from billfold.payments.ach.nacha.records import DEATH_NOTICE
from billfold.payments.ach.rules.returns import queue_return


def receive_prenote(book: Book, cmd: ReceiveAch, ctx: Context, *, code: str | None) -> Outcome:
    """Book nothing; queue a return under `code`, unless it is None. A notice that somebody has died raises an event."""
    if code is not None:
        queue_return(book, ctx, cmd.entry, code=code)
    if cmd.entry.entry_class == DEATH_NOTICE:
        kind = kinds.ACH_IN_SUCCESS if code is None else kinds.ACH_IN_REJECTED
        recording.event(book, ctx, kind, payload=kinds.AchPayload(service_account_id=cmd.pocket_id))
    return {"status": "COMPLETED" if code is None else AchStatus.REJECTED, "code": code}
