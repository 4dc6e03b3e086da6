"""An operator approves, rejects or cancels an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from billfold.events import kinds
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import AccountKind, Direction, JournalKind
from billfold.payments.ach.rules.originate import approve_entry, record_ach_transaction
from billfold.payments.ach.rules.settle import raise_ach_event, update_entry
from billfold.payments.ach.rules.windows import schedule
from billfold.payments.ach.types import AchEntry, AchStatus
from billfold.payments.deposits.rules import sweep_and_invest
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.day_end import roll_business_day

if TYPE_CHECKING:
    from billfold.payments.ach.commands import ReviewAch

_CHANGED = ("status", "reason", "due_at", "effective_on", "settles_at", "settled_at", "held_until")


def review_ach(books: Books, cmd: ReviewAch, ctx: Context) -> Outcome:
    """Approve the entry, or refund its debit. Refuses: ach-origination-not-pending.

    An approved entry can be CANCELLED until it is in a file.
    """
    book = book_of(books, cmd.customers[0])
    entry = book.referenced.get(cmd.ach_id)
    if not isinstance(entry, AchEntry):
        raise NotFound
    approval_response = (
        cmd.decision == AchStatus.CANCELLED and entry.status == AchStatus.APPROVED and entry.file_id is None
    )
    if entry.status != AchStatus.PENDING and not approval_response:
        raise Refused("ach-origination-not-pending", f"The origination is {entry.status}.")
    if cmd.decision == AchStatus.APPROVED:
        times = schedule(ctx.now, entry.amount, ctx.calendars, is_credit=entry.direction == Direction.CREDIT)
        passed = msgspec.structs.asdict(approve_entry(book, entry, times, ctx=ctx))
        entry = update_entry(book, entry, ctx, **{name: passed[name] for name in _CHANGED})
        book.keep_fingerprint(AchEntry, entry.ach_id, entry.proof)
    else:
        _refund(books, entry, ctx)
        update_entry(book, entry, ctx, status=cmd.decision, reason=cmd.reason or entry.reason)
        raise_ach_event(book, ctx, entry, kind=kinds.ACH_OUT_REJECTED)
    return {"ach_id": str(cmd.ach_id), "status": cmd.decision}


def _refund(books: Books, entry: AchEntry, ctx: Context) -> None:
    """Book the debit of a credit entry back as a deposit."""
    if entry.entry_no is None or entry.pocket_id is None:
        return
    book = book_of(books, entry.customer_id)
    pocket = book.pockets[entry.pocket_id]
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.RETURN, ctx, settles_on=ctx.settles_on, reverses=entry.entry_no)
    posting_no = book.post(book.house_account(AccountKind.RAIL_ACH), pocket.bank, entry.amount)
    sweep_and_invest(book, pocket, ctx, amount=entry.amount)
    record_ach_transaction(
        book,
        pocket,
        ctx,
        entry=entry,
        posting_no=posting_no,
        direction=Direction.CREDIT,
        settles_at=book.booked_at,
        title="ACH payment not sent",
    )
    book.close()
