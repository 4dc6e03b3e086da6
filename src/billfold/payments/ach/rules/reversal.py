"""Reversal and reinitiation of originated entries: each creates a new entry."""

from uuid import UUID

import msgspec

from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import Direction
from billfold.payments.ach.commands import AchEntry, AchStatus, AchWay, ReinitiateAch, ReverseAch
from billfold.payments.ach.rules import entries
from billfold.payments.ach.rules.originate import pay_out
from billfold.payments.ach.rules.windows import reversible_until, schedule
from billfold.payments.return_codes import may_reinitiate
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused

REVERSAL, RETRY = "REVERSAL", "RETRY PYMT"
"""The entry descriptions that Nacha requires for them."""


@decides(ReverseAch)
def reverse_ach(books: Books, cmd: ReverseAch, ctx: Context) -> Outcome:
    """Schedule the opposite entry for its window. The reversal of a debit debits the pocket now.

    Refuses: ach-origination-not-reversible, insufficient-funds.
    """
    book = book_of(books, cmd.customers[0])
    entry = entries.referenced_entry(book, cmd.ach_id)
    if entry.pocket_id is None:
        raise NotFound
    _must_be_reversible(entry, ctx)
    if any(_reverses(each, entry) for each in book.referenced.values()):
        raise Refused("ach-origination-not-reversible", "The origination is already reversed.")
    other = Direction.DEBIT if entry.direction == Direction.CREDIT else Direction.CREDIT
    new_entry = _copy_of(entry, ctx, direction=other, description=REVERSAL, reverses_id=entry.ach_id)
    times = schedule(
        ctx.now, entry.amount, ctx.calendars, is_credit=other == Direction.CREDIT, cutoff=ctx.terms.ach_cutoff
    )
    if other == Direction.CREDIT:
        pocket = book.pockets[entry.pocket_id]
        new_entry = pay_out(book, pocket, ctx, entry=new_entry, settles_at=times.settled_at)
    # The money that a reversal returns is the customer's own, so nothing is held.
    approval = entries.approve(book, new_entry, times, ctx=ctx) | {"held_until": None}
    new_entry = msgspec.structs.replace(new_entry, **approval)
    entries.add_entry(book, new_entry)
    return {"ach_id": str(new_entry.ach_id), "status": new_entry.status}


@decides(ReinitiateAch)
def reinitiate_ach(books: Books, cmd: ReinitiateAch, ctx: Context) -> Outcome:
    """Schedule a returned debit again. Refuses: ach-origination-not-returned."""
    book = book_of(books, cmd.customers[0])
    entry = entries.referenced_entry(book, cmd.ach_id)
    if entry.pocket_id is None:
        raise NotFound
    today = et_date(ctx.now)
    may = entry.direction == Direction.DEBIT and entry.status == AchStatus.FAILED
    if not may or not may_reinitiate(
        entry.return_code or "", times=entry.times, sent_on=et_date(entry.created_at), today=today
    ):
        raise Refused(
            "ach-origination-not-returned",
            f"The entry is {entry.status} {entry.return_code or ''}: only a debit that came back "
            "under R01 or R09 is sent again, twice at most and within 180 days.",
        )
    times = schedule(ctx.now, entry.amount, ctx.calendars, is_credit=False, cutoff=ctx.terms.ach_cutoff)
    new_entry = _copy_of(entry, ctx, direction=Direction.DEBIT, description=RETRY, reverses_id=None)
    approval = entries.approve(book, new_entry, times, ctx=ctx)
    new_entry = msgspec.structs.replace(new_entry, times=entry.times + 1, **approval)
    entries.add_entry(book, new_entry)
    # The returned entry itself is not reinitiated again.
    entry = entries.update_entry(book, entry, ctx, times=2)
    book.keep_fingerprint(entry)
    return {"ach_id": str(new_entry.ach_id), "status": new_entry.status}


def _must_be_reversible(entry: AchEntry, ctx: Context) -> None:
    sent = entry.status in {AchStatus.IN_TRANSIT, AchStatus.PROCESSED} and entry.reverses_id is None
    if not sent or entry.effective_on is None:
        raise Refused("ach-origination-not-reversible", f"The origination is {entry.status}.")
    last = reversible_until(entry.effective_on, ctx.calendars)
    if et_date(ctx.now) > last:
        raise Refused("ach-origination-not-reversible", f"A reversal had to go by {last:%Y-%m-%d}.")


def _reverses(seen: object, entry: AchEntry) -> bool:
    return (
        isinstance(seen, AchEntry)
        and seen.reverses_id == entry.ach_id
        and seen.status not in {AchStatus.REJECTED, AchStatus.CANCELLED}
    )


def _copy_of(
    entry: AchEntry, ctx: Context, *, direction: Direction, description: str, reverses_id: UUID | None
) -> AchEntry:
    """Return a new entry to the same account, not reviewed yet."""
    ach_id = ctx.ids.next()
    return AchEntry(
        customer_id=entry.customer_id,
        ach_id=ach_id,
        pocket_id=entry.pocket_id,
        partner_id=entry.partner_id,
        way=AchWay.ORIGINATION,
        direction=direction,
        status=AchStatus.PENDING,
        sec_code=entry.sec_code,
        company_name=entry.company_name,
        description=description,
        lines=entry.lines,
        amount=entry.amount,
        counterparty_id=entry.counterparty_id,
        routing_number=entry.routing_number,
        account_number=entry.account_number,
        account_type=entry.account_type,
        party_name=entry.party_name,
        identification=ach_id.hex[: entries.IDENTIFICATION_WIDTH].upper(),
        reverses_id=reverses_id,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
