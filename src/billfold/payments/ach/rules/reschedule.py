"""Entries that missed their window, for example during an outage, take the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.payments.ach.rules.originate import approve_entry
from billfold.payments.ach.rules.settle import update_entry
from billfold.payments.ach.rules.windows import schedule
from billfold.payments.ach.types import AchEntry, AchStatus

if TYPE_CHECKING:
    from billfold.payments.ach.commands import RescheduleAch

_TIMES = ("due_at", "effective_on", "settles_at", "settled_at", "held_until")


def reschedule_entries(books: Books, cmd: RescheduleAch, ctx: Context) -> Outcome:
    """Move each late entry to the next window; its transaction shows the new date."""
    book = book_of(books, cmd.customers[0])
    entries = [book.referenced.get(ach_id) for ach_id in cmd.ach_ids]
    late = [each for each in entries if isinstance(each, AchEntry) and _is_late(each, ctx)]
    for entry in late:
        # The bills that fund a credit were sold when it was accepted, and have settled since.
        times = schedule(ctx.now, entry.amount, ctx.calendars, is_credit=False)
        anew = msgspec.structs.asdict(approve_entry(book, entry, times, ctx=ctx))
        changed = update_entry(book, entry, ctx, **{name: anew[name] for name in _TIMES})
        book.keep_fingerprint(AchEntry, entry.ach_id, changed.proof)
    return {"postponed": len(late)}


def _is_late(entry: AchEntry, ctx: Context) -> bool:
    approval_response = entry.status == AchStatus.APPROVED and entry.file_id is None
    return approval_response and entry.settles_at is not None and entry.settles_at <= ctx.now
