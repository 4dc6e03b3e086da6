"""Origination: a credit debits the pocket at once, a debit credits it when it settles.

Every entry is reviewed first: most are approved by rule and wait for their window, the others wait
for an operator. Bills that fund a credit are sold for T+1 on acceptance, so that the money is available
when it is sent; a credit that is rejected or returned becomes a deposit again.
"""

from datetime import datetime

import msgspec

from billfold.accounts.agreements.rules import require_accepted
from billfold.accounts.counterparties.rules.verification_kinds import check_payable
from billfold.accounts.counterparties.types import Payee
from billfold.accounts.holds.rules import capture_hold
from billfold.accounts.pockets.rules import place_hold, require_not_closed, require_open
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import require_active
from billfold.ledger.types import AccountKind, Direction, JournalKind, PocketStatus, Rail, TransactionType
from billfold.payments.ach.commands import AchEntry, AchStatus, AchWay, CollectAch, OriginateAch, SendMicroDeposits
from billfold.payments.ach.rules import entries
from billfold.payments.ach.rules.review import review_reason
from billfold.payments.ach.rules.windows import schedule
from billfold.platform.errors import NotFound
from billfold.treasury.rules.withdraw import InsufficientFunds, insufficient_funds

PURPOSE = "ACCTVERIFY"
"""The entry description that Nacha requires for micro-deposits."""


@decides(SendMicroDeposits)
def send_micro_deposits(books: Books, cmd: SendMicroDeposits, ctx: Context) -> Outcome:
    """Pay from `promotions` and schedule the entries for their window."""
    book = book_of(books, cmd.customers[0])
    ach_ids = []
    for amount in cmd.amounts:
        times = schedule(ctx.now, amount, ctx.calendars, is_credit=True, cutoff=ctx.terms.ach_cutoff)
        entry_no = book.begin(JournalKind.ACH, ctx, settles_on=times.effective_on, business_date=book.business_date)
        book.post(book.internal_account(AccountKind.PROMOTIONS), book.internal_account(AccountKind.RAIL_ACH), amount)
        book.close()
        ach_id = ctx.ids.next()
        entry = AchEntry(
            customer_id=book.customer_id,
            ach_id=ach_id,
            pocket_id=None,
            partner_id=None,
            way=AchWay.ORIGINATION,
            direction=Direction.CREDIT,
            status=AchStatus.PENDING,
            sec_code="PPD",
            company_name=cmd.company_name,
            description=PURPOSE,
            amount=amount,
            counterparty_id=cmd.counterparty_id,
            routing_number=cmd.routing_number,
            account_number=cmd.account_number,
            account_type=cmd.account_type,
            party_name=cmd.party_name,
            identification=ach_id.hex[: entries.IDENTIFICATION_WIDTH].upper(),
            entry_no=entry_no,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
        entries.add_entry(book, msgspec.structs.replace(entry, **entries.approve(book, entry, times, ctx=ctx)))
        ach_ids.append(str(ach_id))
    return {"ach_ids": ach_ids}


@decides(OriginateAch)
def originate_ach(books: Books, cmd: OriginateAch, ctx: Context) -> Outcome:
    """Accept an entry. Refuses: customer-not-open, agreement-not-accepted for a credit, pocket-not-open,
    pocket-frozen, counterparty-type-mismatch, counterparty-not-verified, sanction-screen-failed,
    insufficient-funds. NotFound for a foreign pocket or counterparty.
    """
    book = book_of(books, cmd.customers[0])
    pocket = book.pockets.get(cmd.pocket_id)
    payee = book.referenced.get(cmd.counterparty_id)
    if pocket is None or not isinstance(payee, Payee):
        raise NotFound
    if cmd.direction == Direction.CREDIT:
        require_accepted(book, ctx)
    _must_be_usable(book, pocket, payee, direction=cmd.direction)
    times = schedule(
        ctx.now, cmd.amount, ctx.calendars, is_credit=cmd.direction == Direction.CREDIT, cutoff=ctx.terms.ach_cutoff
    )
    held_for_review = review_reason(cmd.amount, cmd.history, above_cents=ctx.terms.ach_review_above_cents)
    entry = _entry_of(book, pocket, payee, cmd=cmd, ctx=ctx)
    if cmd.direction == Direction.CREDIT:
        capture_hold(book, pocket, ctx, hold_id=cmd.hold_id, amount=cmd.amount)
        entry = pay_out(book, pocket, ctx, entry=entry, settles_at=times.settled_at)
    if held_for_review is not None:
        entry = msgspec.structs.replace(entry, reason=held_for_review)
    else:
        entry = msgspec.structs.replace(entry, **entries.approve(book, entry, times, ctx=ctx))
    entries.add_entry(book, entry)
    return {"ach_id": str(cmd.ach_id), "status": entry.status}


def pay_out(book: Book, pocket: PocketBook, ctx: Context, entry: AchEntry, *, settles_at: datetime) -> AchEntry:
    """Post the debit of an entry to a pocket, at T+1. Raises Refused insufficient-funds."""
    try:
        return entries.book_entry(book, pocket, entry, ctx=ctx, settles_at=settles_at)
    except InsufficientFunds:
        why = f"The pocket cannot raise {entry.amount} cents, less fees and holds."
        raise insufficient_funds(why, book, pocket, ctx, amount=entry.amount) from None


def _must_be_usable(book: Book, pocket: PocketBook, payee: Payee, *, direction: Direction) -> None:
    """Raise Refused unless the pocket may originate this; a frozen one may only collect, a frozen customer nothing."""
    require_active(book.account_status)
    if direction == Direction.CREDIT:
        require_open(book, pocket)
    require_not_closed(pocket)
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
        identification=cmd.ach_id.hex[: entries.IDENTIFICATION_WIDTH].upper(),
        request=cmd.request,
        created_at=max(ctx.now, book.booked_at),
        updated_at=ctx.now,
    )


@decides(CollectAch)
def collect_ach(books: Books, cmd: CollectAch, ctx: Context) -> Outcome:
    """Book the money of a debit and invest it, unless the debit was returned before it settled.

    If the pocket was closed in the meantime, nothing is booked: the outcome is NO_POCKET, and the caller
    holds the money in suspense.
    """
    book = book_of(books, cmd.customers[0])
    entry = entries.referenced_entry(book, cmd.ach_id)
    if entry.pocket_id is None:
        raise NotFound
    if entry.status not in {AchStatus.IN_TRANSIT, AchStatus.PROCESSED} or entry.entry_no is not None:
        return {"status": entry.status}
    pocket = book.pockets[entry.pocket_id]
    if pocket.status == PocketStatus.CLOSED:
        return {"status": "NO_POCKET", "amount": entry.amount}
    booked = entries.book_entry(book, pocket, entry, ctx=ctx, settles_at=entry.settled_at)
    _place_hold(book, pocket, entry)
    entries.update_entry(book, entry, ctx, entry_no=booked.entry_no)
    return {"status": "BOOKED"}


def _place_hold(book: Book, pocket: PocketBook, entry: AchEntry) -> None:
    """Place a hold with the id of the entry, so that a return finds it."""
    until = entry.held_until
    if until is not None and until > book.booked_at:
        place_hold(book, pocket, hold_id=entry.ach_id, amount=entry.amount, until=until, cause=TransactionType.ACH)
