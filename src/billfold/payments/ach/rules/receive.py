"""Receipt of an entry for a portal: a credit is a deposit, a debit is paid if the pocket covers it.

An entry that is not accepted is returned to its bank with a return code; an accepted entry can be
returned later.
"""

from datetime import date, timedelta

import msgspec

from billfold.accounts.portals.types import PortalRow, PortalStatus
from billfold.events import kinds
from billfold.ledger.book import recording as record
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook, to_json
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import CustomerStatus
from billfold.ledger.types import PocketStatus
from billfold.payments.ach.commands import ReceiveAch, ReturnAchEntry
from billfold.payments.ach.nacha.types import DEATH_NOTICE
from billfold.payments.ach.rules.entries import (
    add_entry,
    book_entry,
    raise_ach_event,
    referenced_entry,
    reverse_booking,
    schedule_window,
    update_entry,
)
from billfold.payments.ach.rules.windows import next_deadline
from billfold.payments.ach.types import (
    AchEntry,
    AchStatus,
    AchWay,
    IncomingEntry,
    PendingReturn,
    return_of,
    routing_number_of,
)
from billfold.payments.deposits.rules import ach_settles_at, hold_ach_credit
from billfold.payments.return_codes import RETURN_REASONS, returnable_until
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.withdraw import InsufficientFunds

_EFFECTIVE_WITHIN = timedelta(days=7)
"""How far the effective date that a sender names may be from the day an entry comes; else it says nothing."""
NOT_COVERED, CLOSED, NO_ACCOUNT, FROZEN, NOT_FOR_THIS, TWICE = ("R01", "R02", "R03", "R16", "R20", "R24")


@decides(ReceiveAch)
def receive_ach(books: Books, cmd: ReceiveAch, ctx: Context) -> Outcome:
    """Book the entry, or queue a return for the next window. A prenote books nothing.

    So does a notice that somebody has died, which raises an event.
    """
    book = book_of(books, cmd.customers[0])
    pocket = book.pockets.get(cmd.pocket_id)
    code = _return_code(book, pocket, cmd)
    entry = _entry_of(book, cmd, ctx)
    if code is None and not cmd.entry.is_prenote:
        assert pocket is not None
        try:
            entry = book_entry(book, pocket, entry, ctx=ctx, settles_at=ach_settles_at(ctx))
            if not entry.pays_out:
                hold_ach_credit(book, pocket, ctx, amount=entry.amount)
        except InsufficientFunds:
            book.undo()
            code = NOT_COVERED
    if code is not None:
        queue_return(book, ctx, cmd.entry, code=code)
        entry = msgspec.structs.replace(
            entry, status=AchStatus.REJECTED, return_code=code, reason=RETURN_REASONS[code].words
        )
    kept = not cmd.entry.is_prenote and code != TWICE
    if kept:
        add_entry(book, entry)
    kind = kinds.ACH_IN_SUCCESS if code is None else kinds.ACH_IN_REJECTED
    if not cmd.entry.is_prenote:
        raise_ach_event(book, ctx, entry, kind=kind)
    elif cmd.entry.entry_class == DEATH_NOTICE:
        record.event(book, ctx, kind, payload=kinds.AchPayload(service_account_id=cmd.pocket_id))
    outcome: Outcome = {"status": "COMPLETED" if code is None else AchStatus.REJECTED, "code": code}
    return outcome | {"ach_id": str(cmd.ach_id)} if kept else outcome


@decides(ReturnAchEntry)
def return_entry(books: Books, cmd: ReturnAchEntry, ctx: Context) -> Outcome:
    """Reverse the booking and send a return, within the time frame of the code.

    Refuses: ach-entry-not-returnable.
    """
    book = book_of(books, cmd.customers[0])
    entry = referenced_entry(book, cmd.ach_id)
    if entry.way != AchWay.RECEIVING:
        raise NotFound
    if entry.status != AchStatus.PROCESSED or entry.pocket_id is None:
        raise Refused("ach-entry-not-returnable", f"The entry is {entry.status}.")
    until = returnable_until(cmd.code, _settled_on(entry), ctx.calendars)
    if until is not None and ctx.now > until:
        raise Refused("ach-entry-not-returnable", f"A return for {cmd.code} had to go by {until:%Y-%m-%d}.")
    pocket = book.pockets[entry.pocket_id]
    if pocket.status == PocketStatus.CLOSED:
        raise Refused("ach-entry-not-returnable", "The pocket is closed.")
    reverse_booking(book, pocket, entry, ctx=ctx, ending=" returned")
    incoming = msgspec.json.decode(entry.request or "{}", type=IncomingEntry)
    queue_return(book, ctx, incoming, code=cmd.code)
    update_entry(book, entry, ctx, status=AchStatus.FAILED, return_code=cmd.code, reason=RETURN_REASONS[cmd.code].words)
    raise_ach_event(book, ctx, entry, kind=kinds.ACH_IN_REJECTED)
    return {"ach_id": str(cmd.ach_id), "status": AchStatus.FAILED, "code": cmd.code}


def _settled_on(entry: AchEntry) -> date:
    """Return when an entry settled: on its effective date, or on the day it came if its sender names another time."""
    came_on, named = et_date(entry.created_at), entry.effective_on
    if named is None or abs(named - came_on) > _EFFECTIVE_WITHIN:
        return came_on
    return named


def queue_return(book: Book, ctx: Context, entry: IncomingEntry, code: str) -> None:
    """Queue a return for the next window."""
    due_at = next_deadline(ctx.now, ctx.calendars)
    incoming = to_json(return_of(entry, code, bank=ctx.terms.routing_number[:8]))
    return_entry_id = ctx.ids.next()
    row = PendingReturn(
        return_entry_id=return_entry_id,
        customer_id=book.customer_id,
        due_at=due_at,
        payload=incoming,
        created_at=ctx.now,
    )
    book.draft.add(row)
    book.keep_fingerprint(row)
    schedule_window(book, due_at)


def _return_code(book: Book, pocket: PocketBook | None, cmd: ReceiveAch) -> str | None:
    """Return the return code of the entry; None if it is accepted."""
    portal: PortalRow | None = book.portals.get(cmd.portal_id)
    if portal is None or pocket is None:
        return NO_ACCOUNT
    reasons = (
        (portal.status == PortalStatus.CLOSED or pocket.status == PocketStatus.CLOSED, CLOSED),
        ("ACH" not in portal.payment_rails, NOT_FOR_THIS),
        (cmd.entry.is_debit and _is_frozen(book, pocket), FROZEN),
        (isinstance(book.referenced.get(cmd.ach_id), AchEntry), TWICE),
    )
    return next((code for applies, code in reasons if applies), None)


def _is_frozen(book: Book, pocket: PocketBook) -> bool:
    return book.account_status == CustomerStatus.FROZEN or pocket.status == PocketStatus.FROZEN


def _entry_of(book: Book, cmd: ReceiveAch, ctx: Context) -> AchEntry:
    incoming = cmd.entry
    pocket = book.pockets.get(cmd.pocket_id)
    return AchEntry(
        customer_id=book.customer_id,
        ach_id=cmd.ach_id,
        pocket_id=cmd.pocket_id,
        partner_id=None if pocket is None else pocket.partner_id,
        way=AchWay.RECEIVING,
        direction=incoming.direction,
        status=AchStatus.PROCESSED,
        sec_code=incoming.entry_class,
        company_name=incoming.company,
        description=incoming.purpose,
        lines=incoming.lines,
        amount=incoming.amount,
        portal_id=cmd.portal_id,
        routing_number=routing_number_of(incoming.bank),
        account_number=incoming.account_number,
        account_type=incoming.account_type,
        party_name=incoming.name,
        identification=incoming.identification,
        trace_number=incoming.trace,
        file_id=cmd.file_id,
        effective_on=incoming.effective_on,
        request=to_json(incoming),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
