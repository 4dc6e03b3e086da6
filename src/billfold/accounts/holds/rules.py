"""Placing, capturing and ending holds. What a hold keeps is a lien of its pocket, which every payment leaves there."""

from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.holds.commands import (
    ACTIVE_MAX,
    EXPIRY_JOB,
    ExpireHold,
    HoldStatus,
    PlacedHold,
    PlaceHold,
    ReleaseHold,
)
from billfold.accounts.pockets.rules import pocket_of, require_open
from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import EventKind
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import format_usd
from billfold.treasury.rules.withdraw import insufficient_funds, payable_cents

_CAUSE = "PLACED"


@decides(PlaceHold)
def place_hold(books: Books, cmd: PlaceHold, ctx: Context) -> Outcome:
    """Keep an amount that the pocket could pay today.

    Refuses: customer-not-open, pocket-not-open, pocket-frozen, insufficient-funds, too-many-holds.
    """
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    require_open(book, pocket)
    if sum(until > ctx.now for _, until in pocket.liens) >= ACTIVE_MAX:
        raise Refused("too-many-holds", f"The pocket has {ACTIVE_MAX} holds. Release one first.")
    if (payable := payable_cents(pocket, ctx)) < cmd.amount:
        why = f"The pocket can pay {format_usd(payable)} today, less fees and holds."
        raise insufficient_funds(why, book, pocket, ctx, amount=cmd.amount)
    row = PlacedHold(
        customer_id=book.customer_id,
        hold_id=cmd.hold_id,
        pocket_id=pocket.pocket_id,
        amount=cmd.amount,
        until=cmd.until,
        cause=_CAUSE,
        placed=cmd.amount,
        reason=cmd.reason,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    book.touch(pocket)
    pocket.liens.append((row.amount, row.until))
    book.draft.add(row)
    book.schedule(EXPIRY_JOB, row.hold_id, row.until)
    return _record(book, row, ctx, kind=kinds.HOLD_CREATED, cents=row.amount)


@decides(ReleaseHold)
def release_hold(books: Books, cmd: ReleaseHold, ctx: Context) -> Outcome:
    """Let the rest of a hold be used again. Refuses: hold-not-active."""
    book = book_of(books, cmd.customers[0])
    row = _active_hold(book, cmd.hold_id, ctx)
    return _end(book, row, ctx, status=HoldStatus.RELEASED, kind=kinds.HOLD_RELEASED)


@decides(ExpireHold)
def expire_hold(books: Books, cmd: ExpireHold, ctx: Context) -> Outcome:
    """End a hold that has lasted its time; one that has ended is not changed.

    One whose last day was declared closed lasts until the next open day.
    """
    book = book_of(books, cmd.customers[0])
    row = _hold_of(book, cmd.hold_id)
    ends_at = ctx.calendars.settles_at(row.until)
    if row.status != HoldStatus.ACTIVE:
        return _outcome(row)
    if ends_at > ctx.now:
        book.schedule(EXPIRY_JOB, row.hold_id, ends_at)
        return _outcome(row)
    return _end(book, row, ctx, status=HoldStatus.EXPIRED, kind=kinds.HOLD_EXPIRED)


def capture_hold(book: Book, pocket: PocketBook, ctx: Context, *, hold_id: UUID | None, amount: int | None) -> None:
    """Let a payment use an amount of the hold that it names, before it is raised. Nothing if it names none.

    The rest stays held. If the payment is refused, the hold is as before. Raises NotFound for a hold of another
    pocket, Refused hold-not-active, and amount-not-allowed beyond the hold or for a full withdrawal.
    """
    if hold_id is None:
        return
    row = _active_hold(book, hold_id, ctx)
    if row.pocket_id != pocket.pocket_id:
        raise NotFound("There is no such hold.")
    if amount is None or amount > row.amount:
        raise Refused("amount-not-allowed", f"The hold keeps {format_usd(row.amount)}: name an amount up to that.")
    changes: dict[str, Any] = {"captured": row.captured + amount}
    if amount == row.amount:
        changes["status"] = HoldStatus.CAPTURED
    else:
        changes["amount"] = row.amount - amount
    _record(book, _change(book, row, ctx, **changes), ctx, kind=kinds.HOLD_CAPTURED, cents=amount)


def _hold_of(book: Book, hold_id: UUID) -> PlacedHold:
    row = book.referenced.get(hold_id)
    if not isinstance(row, PlacedHold):
        raise NotFound("There is no such hold.")
    return row


def _active_hold(book: Book, hold_id: UUID, ctx: Context) -> PlacedHold:
    row = _hold_of(book, hold_id)
    if row.status != HoldStatus.ACTIVE:
        raise Refused("hold-not-active", f"The hold is {row.status}.")
    if ctx.calendars.settles_at(row.until) <= ctx.now:
        raise Refused("hold-not-active", "The hold has expired.")
    return row


def _end(
    book: Book, row: PlacedHold, ctx: Context, *, status: HoldStatus, kind: EventKind[kinds.HoldPayload]
) -> Outcome:
    return _record(book, _change(book, row, ctx, status=status), ctx, kind=kind, cents=row.amount)


def _change(book: Book, row: PlacedHold, ctx: Context, **columns: object) -> PlacedHold:
    """Store new columns of a hold, and replace its lien by what it still keeps."""
    pocket = pocket_of(book, row.pocket_id)
    book.touch(pocket)
    lien = (row.amount, row.until)
    if lien in pocket.liens:  # the book drops it some time after its end
        pocket.liens.remove(lien)
    columns["updated_at"] = ctx.now
    book.change(PlacedHold, row.hold_id, **columns)
    row = msgspec.structs.replace(row, **columns)
    if row.kept:
        pocket.liens.append((row.kept, row.until))
    return row


def _record(book: Book, row: PlacedHold, ctx: Context, *, kind: EventKind[kinds.HoldPayload], cents: int) -> Outcome:
    """Raise the event of a change, and show the new state to later commands of the batch."""
    book.put(book.referenced, row.hold_id, row)
    book.keep_fingerprint(row)
    payload = kinds.HoldPayload(hold_id=row.hold_id, pocket_id=row.pocket_id, amount=cents, remaining=row.kept)
    recording.event(book, ctx, kind, payload)
    return _outcome(row)


def _outcome(row: PlacedHold) -> Outcome:
    return {"hold_id": str(row.hold_id), "status": row.status}
