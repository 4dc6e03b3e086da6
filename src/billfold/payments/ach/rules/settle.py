"""Changes of many entries at once: a file is transmitted, it counts as settled, or entries missed it."""

from uuid import UUID

from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import EventKind
from billfold.payments.ach.commands import MarkAchTransmitted, RescheduleAch, SettleAch
from billfold.payments.ach.rules.entries import approve_stored, raise_ach_event, update_entry
from billfold.payments.ach.rules.windows import Schedule, postponed, schedule
from billfold.payments.ach.types import AchEntry, AchStatus


@decides(MarkAchTransmitted)
def mark_transmitted(books: Books, cmd: MarkAchTransmitted, ctx: Context) -> Outcome:
    """Move APPROVED entries to IN_TRANSIT."""
    book = book_of(books, cmd.customers[0])
    moved = _move(book, ctx, cmd.ach_ids, since=AchStatus.APPROVED, to=AchStatus.IN_TRANSIT)
    return _raise_events(book, ctx, moved, kind=kinds.ACH_OUT_SENT)


@decides(SettleAch)
def settle_entries(books: Books, cmd: SettleAch, ctx: Context) -> Outcome:
    """Move entries that are IN_TRANSIT to PROCESSED."""
    book = book_of(books, cmd.customers[0])
    moved = _move(book, ctx, cmd.ach_ids, since=AchStatus.IN_TRANSIT, to=AchStatus.PROCESSED)
    return _raise_events(book, ctx, moved, kind=kinds.ACH_OUT_SUCCESS)


@decides(RescheduleAch)
def reschedule_entries(books: Books, cmd: RescheduleAch, ctx: Context) -> Outcome:
    """Move entries that missed their window, for example during an outage, to the next one.

    A window whose day has been declared closed since is that of the next open day.
    """
    book = book_of(books, cmd.customers[0])
    late = [each for each in _entries(book, cmd.ach_ids) if _is_late(each, ctx)]
    for entry in late:
        approve_stored(book, entry, _next_window(entry, ctx), ctx=ctx)
    return {"postponed": len(late)}


def _next_window(entry: AchEntry, ctx: Context) -> Schedule:
    times = None if entry.due_at is None else postponed(entry.due_at, ctx.calendars)
    if times is not None and times.settles_at > ctx.now:
        return times
    # The bills that fund a credit were sold when it was accepted, and have settled since.
    return schedule(ctx.now, entry.amount, ctx.calendars, is_credit=False, cutoff=ctx.terms.ach_cutoff)


def _is_late(entry: AchEntry, ctx: Context) -> bool:
    is_waiting = entry.status == AchStatus.APPROVED and entry.file_id is None
    return is_waiting and entry.settles_at is not None and entry.settles_at <= ctx.now


def _entries(book: Book, ach_ids: tuple[UUID, ...]) -> list[AchEntry]:
    entries = [book.referenced.get(ach_id) for ach_id in ach_ids]
    return [each for each in entries if isinstance(each, AchEntry)]


def _move(book: Book, ctx: Context, ach_ids: tuple[UUID, ...], *, since: AchStatus, to: AchStatus) -> list[AchEntry]:
    """Change the status of entries; consecutive equal changes are written in one statement."""
    return [update_entry(book, entry, ctx, status=to) for entry in _entries(book, ach_ids) if entry.status == since]


def _raise_events(book: Book, ctx: Context, entries: list[AchEntry], kind: EventKind[kinds.AchPayload]) -> Outcome:
    for entry in entries:
        raise_ach_event(book, ctx, entry, kind=kind)
    return {"moved": len(entries)}
