"""Origination: a credit debits the pocket at once, a debit credits it when it settles.

Every entry is reviewed first: most are approved by rule and wait for their window, the others wait
for an operator. Bills that fund a credit are sold for T+1 on acceptance, so that the money is there
when it is sent; a credit that is rejected or returned becomes a deposit again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules.verification_kinds import check_payable
from billfold.accounts.counterparties.types import Payee
from billfold.ledger.book import recording as record
from billfold.ledger.commands import Books, Context, Outcome, book_of
from billfold.ledger.types import NOT_CLOSED, AccountKind, Direction, JournalKind, PocketStatus, Rail, TransactionType
from billfold.payments.ach.rules.risk import review_reason
from billfold.payments.ach.rules.windows import held_until, schedule
from billfold.payments.ach.types import AchEntry, AchStatus, AchWay
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.withdraw import InsufficientFunds, withdraw

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import PocketBook
    from billfold.payments.ach.commands import OriginateAch
    from billfold.payments.ach.rules.windows import Schedule

ACH_WINDOW = "ach.window"
"""The kind of scheduled job that writes a file."""
IDENTIFICATION_WIDTH = 15


def originate_ach(books: Books, cmd: OriginateAch, ctx: Context) -> Outcome:
    """Accept an entry. Refuses: pocket-not-open, pocket-frozen, counterparty-type-mismatch,
    counterparty-not-verified, insufficient-funds. NotFound for a foreign pocket or counterparty.
    """
    book = book_of(books, cmd.customers[0])
    pocket = book.pockets.get(cmd.pocket_id)
    payee = book.referenced.get(cmd.counterparty_id)
    if pocket is None or not isinstance(payee, Payee):
        raise NotFound
    _must_be_usable(pocket, payee, cmd.direction)
    times = _times(cmd, ctx)
    held_for_review = review_reason(cmd.amount, cmd.history, above_cents=ctx.terms.ach_review_above_cents)
    entry = _entry_of(book, pocket, payee, cmd=cmd, ctx=ctx)
    if cmd.direction == Direction.CREDIT:
        entry = pay_out(book, pocket, ctx, entry=entry, settles_at=times.settled_at)
    if held_for_review is not None:
        entry = msgspec.structs.replace(entry, reason=held_for_review)
    else:
        entry = approve_entry(book, entry, times, ctx=ctx)
    add_entry(book, entry)
    return {"ach_id": str(cmd.ach_id), "status": entry.status}


def approve_entry(book: Book, entry: AchEntry, times: Schedule, ctx: Context) -> AchEntry:
    """Return an entry as APPROVED, and schedule its window."""
    window_id = window_at(times.due_at)
    book.schedule(ACH_WINDOW, window_id, times.due_at, of_customer=False)
    held = entry.direction == Direction.DEBIT
    return msgspec.structs.replace(
        entry,
        status=AchStatus.APPROVED,
        reason=None,
        due_at=times.due_at,
        effective_on=times.effective_on,
        settles_at=times.settles_at,
        settled_at=times.settled_at,
        held_until=held_until(times.effective_on, entry.sec_code, ctx.calendars) if held else None,
        updated_at=ctx.now,
    )


def add_entry(book: Book, entry: AchEntry) -> None:
    """Record a new entry, visible to later commands of the batch."""
    book.draft.add(entry)
    book.keep_fingerprint(AchEntry, entry.ach_id, entry.proof)
    book.put(book.referenced, entry.ach_id, entry)


def window_at(due_at: datetime) -> UUID:
    """Return the id of the scheduled job of the window with this deadline."""
    return UUID(int=int(due_at.timestamp()))


def pay_out(book: Book, pocket: PocketBook, ctx: Context, entry: AchEntry, *, settles_at: datetime) -> AchEntry:
    """Post the debit of an entry to a pocket, at T+1. Raises Refused insufficient-funds."""
    roll_business_day(book, pocket, ctx)
    entry_no = book.begin(JournalKind.ACH, ctx, settles_on=ctx.settles_on)
    try:
        _, posting_no = withdraw(
            book,
            pocket,
            ctx,
            amount=entry.amount,
            price_of=ctx.t1_bid,
            settles_on=ctx.settles_on,
            to=book.house_account(AccountKind.RAIL_ACH),
        )
    except InsufficientFunds:
        raise Refused(
            "insufficient-funds", f"The pocket cannot raise {entry.amount} cents, less fees and holds."
        ) from None
    record_ach_transaction(
        book, pocket, ctx, entry=entry, posting_no=posting_no, direction=Direction.DEBIT, settles_at=settles_at
    )
    book.close()
    return msgspec.structs.replace(entry, entry_no=entry_no)


def record_ach_transaction(
    book: Book,
    pocket: PocketBook,
    ctx: Context,
    entry: AchEntry,
    posting_no: int,
    *,
    direction: Direction,
    settles_at: datetime,
    title: str | None = None,
    trace_number: str | None = None,
) -> None:
    """Record the transaction of a posting that an entry caused."""
    group = ctx.ids.next_group()
    record.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.ACH,
        direction=direction,
        amount=entry.amount,
        title=title or _TITLES[entry.way, entry.direction],
        description=entry.description,
        settles_at=settles_at,
        details=details_of(entry, trace_number),
        remittance={"unstructured": list(entry.lines), "structured": None} if entry.lines else None,
    )


def details_of(entry: AchEntry, trace_number: str | None = None) -> dict[str, Any]:
    """Return the details of an ACH transaction."""
    return {
        "company_name": entry.company_name,
        "company_entry_description": entry.description,
        "individual_identification_number": entry.identification or None,
        "trace_number": trace_number or entry.trace_number,
        "ach_id": entry.ach_id,
        "ach_direction": entry.way,
        "portal_id": entry.portal_id,
    }


_TITLES = {
    (AchWay.ORIGINATION, Direction.CREDIT): "ACH payment",
    (AchWay.ORIGINATION, Direction.DEBIT): "ACH collection",
    (AchWay.RECEIVING, Direction.CREDIT): "ACH credit",
    (AchWay.RECEIVING, Direction.DEBIT): "ACH debit",
}


def _times(cmd: OriginateAch, ctx: Context) -> Schedule:
    return schedule(ctx.now, cmd.amount, ctx.calendars, is_credit=cmd.direction == Direction.CREDIT)


def _must_be_usable(pocket: PocketBook, payee: Payee, direction: Direction) -> None:
    """Raise Refused unless the pocket may originate this; a frozen pocket may only collect."""
    if pocket.status == PocketStatus.FROZEN and direction == Direction.CREDIT:
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.")
    if pocket.status not in NOT_CLOSED:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    check_payable(payee, Rail.ACH, unverified_wires=False)


def _entry_of(book: Book, pocket: PocketBook, payee: Payee, cmd: OriginateAch, ctx: Context) -> AchEntry:
    return AchEntry(
        customer_id=book.customer_id,
        ach_id=cmd.ach_id,
        pocket_id=pocket.pocket_id,
        partner_id=pocket.partner_id,
        way=AchWay.ORIGINATION,
        direction=cmd.direction,
        status=AchStatus.PENDING,
        sec_code=cmd.sec_code,
        company_name=book.name,
        description=cmd.description,
        lines=list(cmd.lines),
        amount=cmd.amount,
        counterparty_id=payee.counterparty_id,
        routing_number=payee.details["routing_number"],
        account_number=payee.details["account_number"],
        account_type=payee.details["account_type"],
        party_name=payee.name,
        identification=cmd.ach_id.hex[:IDENTIFICATION_WIDTH].upper(),
        request=cmd.request,
        created_at=max(ctx.now, book.booked_at),
        updated_at=ctx.now,
    )
