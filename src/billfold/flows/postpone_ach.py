"""The window of an entry was missed, as when nothing ran for days: it takes the next one."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

import msgspec

from billfold.domain.ach import rules as ach
from billfold.domain.ach.rules import AchEntry
from billfold.flows.command import Books, Command, Context, Outcome, book_of
from billfold.flows.originate_ach import let_through
from billfold.flows.send_ach import alter

_TIMES = ("due_at", "effective_on", "settles_at", "settled_at", "held_until")


class PostponeAch(Command, frozen=True, kw_only=True):
    """Entries of one customer that no file holds, though they were to have settled by now.

    Looks at them.
    """

    needs_names: ClassVar[bool] = False

    ach_ids: tuple[UUID, ...]


def postpone_ach(books: Books, cmd: PostponeAch, ctx: Context) -> Outcome:
    """Give each late entry the next window; its activity is read with the day that it has then."""
    book = book_of(books, cmd.customers[0])
    entries = [book.seen.get(ach_id) for ach_id in cmd.ach_ids]
    late = [each for each in entries if isinstance(each, AchEntry) and _is_late(each, ctx)]
    for entry in late:
        # What pays for a credit was sold when it was accepted, and has settled since.
        times = ach.schedule(ctx.now, entry.amount, ctx.calendars, is_credit=False)
        anew = msgspec.structs.asdict(let_through(book, entry, times, ctx))
        changed = alter(book, entry, ctx, **{name: anew[name] for name in _TIMES})
        book.draft.proofs.append(("ach_entry", entry.ach_id, changed.proof))
    return {"postponed": len(late)}


def _is_late(entry: AchEntry, ctx: Context) -> bool:
    waits = entry.status == "APPROVED" and entry.file_id is None
    return waits and entry.settles_at is not None and entry.settles_at <= ctx.now
