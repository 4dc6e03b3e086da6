"""ACH entries: recorded, changed, approved, transmitted, settled, and their money reversed."""

from datetime import datetime, time
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.pockets.commands import Hold
from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, EventKind, JournalKind, TransactionType
from billfold.payments.ach.commands import AchEntry, AchStatus, AchWay, MarkAchTransmitted, RescheduleAch, SettleAch
from billfold.payments.ach.rules.windows import Schedule, held_until, postponed, schedule
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import NotFound
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.overdraft import claw_back
from billfold.treasury.rules.sweep import sweep_and_invest
from billfold.treasury.rules.unsettled import Proceeds, unsettled_arrival
from billfold.treasury.rules.withdraw import withdraw

ACH_WINDOW = "ach.window"
"""The kind of scheduled job that writes a file."""
IDENTIFICATION_WIDTH = 15
_TITLES = {
    (AchWay.ORIGINATION, Direction.CREDIT): "ACH payment",
    (AchWay.ORIGINATION, Direction.DEBIT): "ACH collection",
    (AchWay.RECEIVING, Direction.CREDIT): "ACH credit",
    (AchWay.RECEIVING, Direction.DEBIT): "ACH debit",
}


def referenced_entry(book: Book, ach_id: UUID) -> AchEntry:
    """Return the entry of the command. Raises NotFound."""
    entry = book.referenced.get(ach_id)
    if not isinstance(entry, AchEntry):
        raise NotFound
    return entry


def add_entry(book: Book, entry: AchEntry) -> None:
    """Record a new entry, visible to later commands of the batch."""
    book.draft.add(entry)
    book.keep_fingerprint(entry)
    book.put(book.referenced, entry.ach_id, entry)


def update_entry(book: Book, entry: AchEntry, ctx: Context, **columns: object) -> AchEntry:
    """Change columns of an entry, visible to later commands of the batch; return the changed entry."""
    columns["updated_at"] = ctx.now
    book.change(AchEntry, entry.ach_id, **columns)
    changed = msgspec.structs.replace(entry, **columns)
    book.put(book.referenced, entry.ach_id, changed)
    return changed


def raise_ach_event(book: Book, ctx: Context, entry: AchEntry, kind: EventKind[kinds.AchPayload]) -> None:
    """Raise an event about an entry; entries of the bank itself raise none."""
    if entry.pocket_id is not None:
        payload = kinds.AchPayload(service_account_id=entry.pocket_id, ach_id=entry.ach_id)
        recording.event(book, ctx, kind, payload=payload)


def approve(book: Book, entry: AchEntry, times: Schedule, ctx: Context) -> dict[str, Any]:
    """Schedule the window of an entry; return the columns of its approval."""
    schedule_window(book, times.due_at)
    held = entry.direction == Direction.DEBIT
    return {
        "status": AchStatus.APPROVED,
        "reason": None,
        "due_at": times.due_at,
        "effective_on": times.effective_on,
        "settles_at": times.settles_at,
        "settled_at": times.settled_at,
        "held_until": held_until(times.effective_on, entry.sec_code, ctx.calendars) if held else None,
    }


def approve_stored(book: Book, entry: AchEntry, times: Schedule, ctx: Context) -> None:
    """Approve an entry that is already recorded, for a first or another window."""
    approved = update_entry(book, entry, ctx, **approve(book, entry, times, ctx=ctx))
    book.keep_fingerprint(approved)


def schedule_window(book: Book, due_at: datetime) -> None:
    """Schedule the window with this deadline."""
    book.schedule(ACH_WINDOW, window_at(due_at), due_at, of_customer=False)


def window_at(due_at: datetime) -> UUID:
    """Return the id of the scheduled job of the window with this deadline."""
    return UUID(int=int(due_at.timestamp()))


def book_entry(
    book: Book, pocket: PocketBook, entry: AchEntry, ctx: Context, *, settles_at: datetime | None
) -> AchEntry:
    """Post the money of an entry: a deposit, or a debit at T+1. Raises InsufficientFunds."""
    roll_business_day(book, pocket, ctx)
    kind = JournalKind.ACH if entry.pays_out else JournalKind.DEPOSIT
    entry_no = book.begin(kind, ctx, settles_on=ctx.settles_on)
    rail = book.internal_account(AccountKind.RAIL_ACH)
    if entry.pays_out:
        posting_no = withdraw(book, pocket, ctx, amount=entry.amount, terms=ctx.next_day, to=rail).posting_no
    else:
        posting_no = book.post(rail, pocket.bank, entry.amount)
        sweep_and_invest(book, pocket, ctx, amount=entry.amount)
    settles_at = max(settles_at or book.booked_at, book.booked_at)
    _close_with_transaction(
        book, pocket, entry, ctx, posting_no=posting_no, is_debit=entry.pays_out, settles_at=settles_at
    )
    return msgspec.structs.replace(entry, entry_no=entry_no)


def reverse_booking(
    book: Book, pocket: PocketBook, entry: AchEntry, ctx: Context, *, ending: str, trace_number: str | None = None
) -> None:
    """Reverse the posting of an entry: a deposit, or a clawback that also ends its hold."""
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.RETURN, ctx, settles_on=ctx.settles_on, reverses=entry.entry_no)
    rail = book.internal_account(AccountKind.RAIL_ACH)
    if entry.pays_out:
        posting_no = book.post(rail, pocket.bank, entry.amount)
        sweep_and_invest(book, pocket, ctx, amount=entry.amount, unsettled=_unsettled_proceeds(entry, ctx))
    else:
        _release_hold(book, pocket, entry, ctx=ctx)
        posting_no = claw_back(book, pocket, ctx, amount=entry.amount, to=rail, terms=ctx.next_day)
    _close_with_transaction(
        book,
        pocket,
        entry,
        ctx,
        posting_no=posting_no,
        is_debit=not entry.pays_out,
        settles_at=book.booked_at,
        ending=ending,
        trace_number=trace_number,
    )


def _unsettled_proceeds(entry: AchEntry, ctx: Context) -> Proceeds | None:
    """Return the returned money of a payment as unsettled, if the bills sold for it have not settled."""
    settles_on = ctx.market.settles_on(entry.created_at)
    if entry.settles_at is not None:
        settles_on = max(settles_on, et_date(entry.settles_at))
    return unsettled_arrival(entry.amount, ctx, settles_on)


def _close_with_transaction(
    book: Book,
    pocket: PocketBook,
    entry: AchEntry,
    ctx: Context,
    *,
    posting_no: int,
    is_debit: bool,
    settles_at: datetime,
    ending: str = "",
    trace_number: str | None = None,
) -> None:
    """Record the transaction of the entry's posting, and close the journal entry."""
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=ctx.ids.next_group(),
        type=TransactionType.ACH,
        direction=Direction.DEBIT if is_debit else Direction.CREDIT,
        amount=entry.amount,
        title=_TITLES[entry.way, entry.direction] + ending,
        description=entry.description,
        settles_at=settles_at,
        details={
            "company_name": entry.company_name,
            "company_entry_description": entry.description,
            "individual_identification_number": entry.identification or None,
            "trace_number": trace_number or entry.trace_number,
            "ach_id": entry.ach_id,
            "ach_direction": entry.way,
            "portal_id": entry.portal_id,
        },
        remittance={"unstructured": list(entry.lines), "structured": None} if entry.lines else None,
    )
    book.close()


def _release_hold(book: Book, pocket: PocketBook, entry: AchEntry, ctx: Context) -> None:
    """Release the hold on the money of a collection, if it is still active."""
    lien: Any = (entry.amount, entry.held_until)
    calendars = ctx.calendars
    is_held = entry.held_until is not None and calendars.settles_at(entry.held_until) > book.booked_at
    if is_held and lien in pocket.liens:
        pocket.liens.remove(lien)
        until = book.booked_at
        if calendars.settles_at(until) != until:  # a hold never ends on a day that was declared closed
            until = et_instant(calendars.fed_on_or_before(et_date(until)), time(23, 59))
        book.change(Hold, entry.ach_id, until=until)


@decides(MarkAchTransmitted)
def mark_transmitted(books: Books, cmd: MarkAchTransmitted, ctx: Context) -> Outcome:
    """Move APPROVED entries to IN_TRANSIT."""
    book = book_of(books, cmd.customers[0])
    moved = _change_status(book, ctx, cmd.ach_ids, since=AchStatus.APPROVED, to=AchStatus.IN_TRANSIT)
    return _raise_events(book, ctx, moved, kind=kinds.ACH_OUT_SENT)


@decides(SettleAch)
def settle_entries(books: Books, cmd: SettleAch, ctx: Context) -> Outcome:
    """Move entries that are IN_TRANSIT to PROCESSED."""
    book = book_of(books, cmd.customers[0])
    moved = _change_status(book, ctx, cmd.ach_ids, since=AchStatus.IN_TRANSIT, to=AchStatus.PROCESSED)
    return _raise_events(book, ctx, moved, kind=kinds.ACH_OUT_SUCCESS)


@decides(RescheduleAch)
def reschedule_entries(books: Books, cmd: RescheduleAch, ctx: Context) -> Outcome:
    """Move entries that missed their window, for example during an outage, to the next one.

    A window on a day that has since been declared closed moves to the next open day.
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
    # The bills that fund a credit were sold when it was accepted, and have since settled.
    return schedule(ctx.now, entry.amount, ctx.calendars, is_credit=False, cutoff=ctx.terms.ach_cutoff)


def _is_late(entry: AchEntry, ctx: Context) -> bool:
    is_waiting = entry.status == AchStatus.APPROVED and entry.file_id is None
    return is_waiting and entry.settles_at is not None and entry.settles_at <= ctx.now


def _entries(book: Book, ach_ids: tuple[UUID, ...]) -> list[AchEntry]:
    entries = [book.referenced.get(ach_id) for ach_id in ach_ids]
    return [each for each in entries if isinstance(each, AchEntry)]


def _change_status(
    book: Book, ctx: Context, ach_ids: tuple[UUID, ...], *, since: AchStatus, to: AchStatus
) -> list[AchEntry]:
    """Change the status of entries; consecutive equal changes are written in one statement."""
    return [update_entry(book, entry, ctx, status=to) for entry in _entries(book, ach_ids) if entry.status == since]


def _raise_events(book: Book, ctx: Context, entries: list[AchEntry], kind: EventKind[kinds.AchPayload]) -> Outcome:
    for entry in entries:
        raise_ach_event(book, ctx, entry, kind=kind)
    return {"moved": len(entries)}
