"""Returns and notifications of change for entries that we originated."""

from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, JournalKind, PocketStatus
from billfold.payments.ach.commands import AchEntry, AchStatus, AchWay, ReceiveAchReturn, RecordNoc
from billfold.payments.ach.rules.entries import raise_ach_event, referenced_entry, reverse_booking, update_entry
from billfold.payments.return_codes import RECEIVED_RETURN_REASONS, returnable_until
from billfold.platform.dates import et_date

UNKNOWN_ENTRY, DUPLICATE_RETURN, UNTIMELY_RETURN = "R69", "R67", "R68"
"""Why a return is not accepted: no matching entry, a duplicate return, or the time frame is over."""
_LIVE = frozenset({AchStatus.IN_TRANSIT, AchStatus.PROCESSED})


@decides(ReceiveAchReturn)
def receive_return(books: Books, cmd: ReceiveAchReturn, ctx: Context) -> Outcome:
    """Reverse what the entry moved.

    The outcome is FAILED; NOT_ACCEPTED with the code that dishonors the return; or NO_POCKET if
    the pocket of a credit is closed and the money has to be held in suspense.
    """
    book = book_of(books, cmd.customers[0])
    entry = referenced_entry(book, cmd.ach_id)
    objection = _objection(entry, cmd, ctx)
    if objection is not None:
        return {"status": "NOT_ACCEPTED", "code": objection}
    where: str = AchStatus.FAILED
    if entry.entry_no is not None:
        where = _reverse_money(book, entry, ctx, trace=cmd.trace)
    reason = RECEIVED_RETURN_REASONS[cmd.code].words
    update_entry(book, entry, ctx, status=AchStatus.FAILED, return_code=cmd.code, reason=reason)
    raise_ach_event(book, ctx, entry, kind=kinds.ACH_OUT_REJECTED)
    return {
        "ach_id": str(cmd.ach_id),
        "status": where,
        "code": cmd.code,
        "amount": entry.amount,
        "direction": entry.direction,
    }


@decides(RecordNoc)
def record_noc(books: Books, cmd: RecordNoc, ctx: Context) -> Outcome:
    """Record the correction with its entry."""
    book = book_of(books, cmd.customers[0])
    entry = referenced_entry(book, cmd.ach_id)
    update_entry(book, entry, ctx, change_code=cmd.code, corrected=cmd.corrected)
    counterparty_id = None if entry.counterparty_id is None else str(entry.counterparty_id)
    return {"counterparty_id": counterparty_id, "ach_id": str(cmd.ach_id), "code": cmd.code, "corrected": cmd.corrected}


def _objection(entry: AchEntry, cmd: ReceiveAchReturn, ctx: Context) -> str | None:
    """Return the code that dishonors a return; None if it is accepted."""
    if entry.way != AchWay.ORIGINATION:
        return UNKNOWN_ENTRY
    if entry.status == AchStatus.FAILED:
        return DUPLICATE_RETURN
    returned = (cmd.direction, cmd.amount)
    if not _was_transmitted(entry) or (entry.direction, entry.amount) != returned:
        return UNKNOWN_ENTRY
    if entry.settles_at is None:
        return None
    until = returnable_until(cmd.code, et_date(entry.settles_at), ctx.calendars)
    return UNTIMELY_RETURN if until is not None and cmd.arrived_at > until else None


def _was_transmitted(entry: AchEntry) -> bool:
    """Whether the entry is in a file, even if its transmission is not confirmed yet."""
    return entry.status in _LIVE or (entry.status == AchStatus.APPROVED and entry.file_id is not None)


def _reverse_money(book: Book, entry: AchEntry, ctx: Context, trace: str) -> str:
    if entry.pocket_id is None:
        _reverse_micro_deposit(book, entry, ctx)
        return AchStatus.FAILED
    pocket = book.pockets[entry.pocket_id]
    if pocket.status == PocketStatus.CLOSED and entry.direction == Direction.CREDIT:
        return "NO_POCKET"
    reverse_booking(book, pocket, entry, ctx=ctx, ending=" returned", trace_number=trace)
    return AchStatus.FAILED


def _reverse_micro_deposit(book: Book, entry: AchEntry, ctx: Context) -> None:
    """Book the return of a micro-deposit to the bank."""
    day = book.business_date
    book.begin(JournalKind.RETURN, ctx, settles_on=day, business_date=day)
    book.post(book.internal_account(AccountKind.RAIL_ACH), book.internal_account(AccountKind.PROMOTIONS), entry.amount)
    book.close()
