"""Returns: received for entries that we originated, and sent for entries that we received; NOCs."""

from datetime import date, datetime, timedelta

import msgspec

from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import to_json
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, JournalKind, PocketStatus
from billfold.payments.ach.commands import (
    AchEntry,
    AchStatus,
    AchWay,
    IncomingEntry,
    PendingReturn,
    ReceiveAchReturn,
    RecordNoc,
    ReturnAchEntry,
    return_of,
)
from billfold.payments.ach.rules import entries
from billfold.payments.ach.rules.entries import referenced_entry, update_entry
from billfold.payments.ach.rules.windows import next_deadline
from billfold.payments.return_codes import RECEIVED_RETURN_REASONS, RETURN_REASONS, returnable_until
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused


@decides(RecordNoc)
def record_noc(books: Books, cmd: RecordNoc, ctx: Context) -> Outcome:
    """Record the correction with its entry."""
    book = book_of(books, cmd.customers[0])
    entry = referenced_entry(book, cmd.ach_id)
    update_entry(book, entry, ctx, change_code=cmd.code, corrected=cmd.corrected)
    counterparty_id = None if entry.counterparty_id is None else str(entry.counterparty_id)
    return {"counterparty_id": counterparty_id, "ach_id": str(cmd.ach_id), "code": cmd.code, "corrected": cmd.corrected}


_EFFECTIVE_WITHIN = timedelta(days=7)
"""Maximum distance of the sender's effective date from the day of receipt; otherwise it is ignored."""
UNKNOWN_ENTRY, DUPLICATE_RETURN, UNTIMELY_RETURN = "R69", "R67", "R68"
"""Reasons not to accept a return: no matching entry, a duplicate return, or an expired time frame."""
_LIVE = frozenset({AchStatus.IN_TRANSIT, AchStatus.PROCESSED})


@decides(ReceiveAchReturn)
def receive_return(books: Books, cmd: ReceiveAchReturn, ctx: Context) -> Outcome:
    """Reverse the money of the entry.

    The outcome is FAILED; NOT_ACCEPTED with the code that dishonors the return; or NO_POCKET if
    the pocket of a credit is closed and the money has to be held in suspense.
    """
    book = book_of(books, cmd.customers[0])
    entry = entries.referenced_entry(book, cmd.ach_id)
    objection = _objection(entry, cmd, ctx)
    if objection is not None:
        return {"status": "NOT_ACCEPTED", "code": objection}
    where: str = AchStatus.FAILED
    if entry.entry_no is not None:
        where = _reverse_money(book, entry, ctx, trace=cmd.trace)
    reason = RECEIVED_RETURN_REASONS[cmd.code].words
    entries.update_entry(book, entry, ctx, status=AchStatus.FAILED, return_code=cmd.code, reason=reason)
    entries.raise_ach_event(book, ctx, entry, kind=kinds.ACH_OUT_REJECTED)
    return {
        "ach_id": str(cmd.ach_id),
        "status": where,
        "code": cmd.code,
        "amount": entry.amount,
        "direction": entry.direction,
    }


@decides(ReturnAchEntry)
def return_entry(books: Books, cmd: ReturnAchEntry, ctx: Context) -> Outcome:
    """Reverse the booking and send a return, within the time frame of the code.

    Refuses: ach-entry-not-returnable.
    """
    book = book_of(books, cmd.customers[0])
    entry = entries.referenced_entry(book, cmd.ach_id)
    if entry.way != AchWay.RECEIVING:
        raise NotFound
    if entry.status != AchStatus.PROCESSED or entry.pocket_id is None:
        raise Refused("ach-entry-not-returnable", f"The entry is {entry.status}.")
    until = return_deadline(entry, cmd.code, ctx.calendars)
    if until is not None and next_deadline(ctx.now, ctx.calendars) > until:
        raise Refused("ach-entry-not-returnable", f"A return for {cmd.code} had to go by {until:%Y-%m-%d}.")
    pocket = book.pockets[entry.pocket_id]
    if pocket.status == PocketStatus.CLOSED:
        raise Refused("ach-entry-not-returnable", "The pocket is closed.")
    entries.reverse_booking(book, pocket, entry, ctx=ctx, ending=" returned")
    incoming = msgspec.json.decode(entry.request or "{}", type=IncomingEntry)
    queue_return(book, ctx, incoming, code=cmd.code)
    entries.update_entry(
        book, entry, ctx, status=AchStatus.FAILED, return_code=cmd.code, reason=RETURN_REASONS[cmd.code].words
    )
    entries.raise_ach_event(book, ctx, entry, kind=kinds.ACH_IN_REJECTED)
    return {"ach_id": str(cmd.ach_id), "status": AchStatus.FAILED, "code": cmd.code}


def return_deadline(entry: AchEntry, code: str, calendars: Calendars) -> datetime | None:
    """Return when the return of a received entry must have arrived; None if no rule limits it."""
    return returnable_until(code, _settled_on(entry), calendars)


def _settled_on(entry: AchEntry) -> date:
    """Return when an entry settled: on its effective date, or on the day of receipt if that date is out of range."""
    came_on, named = et_date(entry.created_at), entry.effective_on
    if named is None or abs(named - came_on) > _EFFECTIVE_WITHIN:
        return came_on
    return named


def queue_return(book: Book, ctx: Context, entry: IncomingEntry, code: str) -> None:
    """Queue a return for the next window."""
    due_at = next_deadline(ctx.now, ctx.calendars)
    incoming = to_json(return_of(entry, code, bank=ctx.terms.routing_number[:8]))
    return_entry_id = ctx.ids.next()
    row = PendingReturn(
        return_entry_id=return_entry_id,
        customer_id=book.customer_id,
        due_at=due_at,
        payload=incoming,
        created_at=ctx.now,
    )
    book.draft.add(row)
    book.keep_fingerprint(row)
    entries.schedule_window(book, due_at)


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
    """Return whether the entry is in a file, even if its transmission is not confirmed yet."""
    return entry.status in _LIVE or (entry.status == AchStatus.APPROVED and entry.file_id is not None)


def _reverse_money(book: Book, entry: AchEntry, ctx: Context, trace: str) -> str:
    if entry.pocket_id is None:
        _reverse_micro_deposit(book, entry, ctx)
        return AchStatus.FAILED
    pocket = book.pockets[entry.pocket_id]
    if pocket.status == PocketStatus.CLOSED and entry.direction == Direction.CREDIT:
        return "NO_POCKET"
    entries.reverse_booking(book, pocket, entry, ctx=ctx, ending=" returned", trace_number=trace)
    return AchStatus.FAILED


def _reverse_micro_deposit(book: Book, entry: AchEntry, ctx: Context) -> None:
    """Book the return of a micro-deposit to the bank."""
    day = book.business_date
    book.begin(JournalKind.RETURN, ctx, settles_on=day, business_date=day)
    book.post(book.internal_account(AccountKind.RAIL_ACH), book.internal_account(AccountKind.PROMOTIONS), entry.amount)
    book.close()
