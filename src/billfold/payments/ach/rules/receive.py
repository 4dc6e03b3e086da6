"""Receipt of an entry for a portal: a credit is a deposit, a debit is paid if the pocket covers it.

An entry that is not accepted is returned to its bank with a return code.
"""

import msgspec

from billfold.accounts.portals.commands import PortalRow, PortalStatus
from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook, to_json
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import CustomerStatus
from billfold.ledger.types import PocketStatus
from billfold.payments.ach import commands
from billfold.payments.ach.rules import entries
from billfold.payments.ach.rules.prenotes import receive_prenote
from billfold.payments.ach.rules.returns import queue_return
from billfold.payments.deposits.rules import ach_settles_at, hold_ach_credit
from billfold.payments.return_codes import RETURN_REASONS
from billfold.payments.routing_numbers import routing_number_of
from billfold.treasury.rules.withdraw import InsufficientFunds

NOT_COVERED, CLOSED, NO_ACCOUNT, FROZEN, NOT_FOR_THIS, TWICE = ("R01", "R02", "R03", "R16", "R20", "R24")


@decides(commands.ReceiveAch)
def receive_ach(books: Books, cmd: commands.ReceiveAch, ctx: Context) -> Outcome:
    """Book the entry, or queue a return for the next window."""
    book = book_of(books, cmd.customers[0])
    pocket = book.pockets.get(cmd.pocket_id)
    code = _return_code(book, pocket, cmd)
    if cmd.entry.is_prenote:
        return receive_prenote(book, cmd, ctx, code=code)
    entry = _entry_of(book, cmd, ctx)
    if code is None:
        assert pocket is not None
        try:
            entry = entries.book_entry(book, pocket, entry, ctx=ctx, settles_at=ach_settles_at(ctx))
            if not entry.pays_out:
                hold_ach_credit(book, pocket, ctx, amount=entry.amount)
        except InsufficientFunds:
            book.undo()
            code = NOT_COVERED
    if code is not None:
        queue_return(book, ctx, cmd.entry, code=code)
        entry = msgspec.structs.replace(
            entry, status=commands.AchStatus.REJECTED, return_code=code, reason=RETURN_REASONS[code].words
        )
    if code != TWICE:
        entries.add_entry(book, entry)
    entries.raise_ach_event(book, ctx, entry, kind=kinds.ACH_IN_SUCCESS if code is None else kinds.ACH_IN_REJECTED)
    outcome: Outcome = {"status": "COMPLETED" if code is None else commands.AchStatus.REJECTED, "code": code}
    return outcome | {"ach_id": str(cmd.ach_id)} if code != TWICE else outcome


def _return_code(book: Book, pocket: PocketBook | None, cmd: commands.ReceiveAch) -> str | None:
    """Return the return code of the entry; None if it is accepted."""
    portal: PortalRow | None = book.portals.get(cmd.portal_id)
    if portal is None or pocket is None:
        return NO_ACCOUNT
    reasons = (
        (portal.status == PortalStatus.CLOSED or pocket.status == PocketStatus.CLOSED, CLOSED),
        ("ACH" not in portal.payment_rails, NOT_FOR_THIS),
        (cmd.entry.is_debit and _is_frozen(book, pocket), FROZEN),
        (isinstance(book.referenced.get(cmd.ach_id), commands.AchEntry), TWICE),
    )
    return next((code for applies, code in reasons if applies), None)


def _is_frozen(book: Book, pocket: PocketBook) -> bool:
    return book.account_status == CustomerStatus.FROZEN or pocket.status == PocketStatus.FROZEN


def _entry_of(book: Book, cmd: commands.ReceiveAch, ctx: Context) -> commands.AchEntry:
    incoming = cmd.entry
    pocket = book.pockets.get(cmd.pocket_id)
    return commands.AchEntry(
        customer_id=book.customer_id,
        ach_id=cmd.ach_id,
        pocket_id=cmd.pocket_id,
        partner_id=None if pocket is None else pocket.partner_id,
        way=commands.AchWay.RECEIVING,
        direction=incoming.direction,
        status=commands.AchStatus.PROCESSED,
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
