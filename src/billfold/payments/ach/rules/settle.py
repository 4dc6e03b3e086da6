"""Status changes of all entries of a file: transmitted, then settled."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.events import kinds, payloads
from billfold.ledger.book import recording as record
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.payments.ach.types import AchEntry, AchStatus

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.payments.ach.commands import MarkAchTransmitted, SettleAch


def mark_transmitted(books: Books, cmd: MarkAchTransmitted, ctx: Context) -> Outcome:
    """Move APPROVED entries to IN_TRANSIT."""
    book = book_of(books, cmd.customers[0])
    moved = _move(book, ctx, cmd.ach_ids, since=AchStatus.APPROVED, to=AchStatus.IN_TRANSIT)
    _raise_events(book, ctx, moved, kind=kinds.ACH_OUT_SENT)
    return {"moved": len(moved)}


def settle_entries(books: Books, cmd: SettleAch, ctx: Context) -> Outcome:
    """Move entries that are IN_TRANSIT to PROCESSED."""
    book = book_of(books, cmd.customers[0])
    moved = _move(book, ctx, cmd.ach_ids, since=AchStatus.IN_TRANSIT, to=AchStatus.PROCESSED)
    _raise_events(book, ctx, moved, kind=kinds.ACH_OUT_SUCCESS)
    return {"moved": len(moved)}


def update_entry(book: Book, entry: AchEntry, ctx: Context, **columns: object) -> AchEntry:
    """Change columns of an entry, visible to later commands of the batch; return the changed entry."""
    columns["updated_at"] = ctx.now
    book.change(AchEntry, entry.ach_id, **columns)
    changed = msgspec.structs.replace(entry, **columns)
    book.put(book.referenced, entry.ach_id, changed)
    return changed


def _move(book: Book, ctx: Context, ach_ids: tuple[UUID, ...], *, since: AchStatus, to: AchStatus) -> list[AchEntry]:
    """Change the status of entries; consecutive equal changes are written in one statement."""
    entries = [book.referenced.get(ach_id) for ach_id in ach_ids]
    return [
        update_entry(book, entry, ctx, status=to)
        for entry in entries
        if isinstance(entry, AchEntry) and entry.status == since
    ]


def _raise_events(
    book: Book, ctx: Context, entries: list[AchEntry], kind: kinds.EventKind[payloads.AchPayload]
) -> None:
    for entry in entries:
        raise_ach_event(book, ctx, entry, kind=kind)


def raise_ach_event(book: Book, ctx: Context, entry: AchEntry, kind: kinds.EventKind[payloads.AchPayload]) -> None:
    """Raise an event about an entry; entries of the bank itself raise none."""
    if entry.pocket_id is not None:
        payload = payloads.AchPayload(service_account_id=entry.pocket_id, ach_id=entry.ach_id)
        record.event(book, ctx, kind, payload=payload)
