"""Breaks are opened by a statement, closed by a later one, owned by an operator, and closed by two."""

from functools import partial
from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.book.recording import post_signed
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id
from billfold.reconciliation.commands import AssignBreak, CloseBreak, ReconcileDay
from billfold.reconciliation.types import Break, BreakStatus, Cause, ReconciledDay, Resolution, Source, day_id, held_id


@decides(ReconcileDay)
def reconcile_day(books: Books, cmd: ReconcileDay, ctx: Context) -> Outcome:
    """Record the day and its breaks. Refuses: break-state if the day has its statement, or already lacks it."""
    book = book_of(books, cmd.customers[0])
    key = day_id(cmd.source, cmd.account, cmd.day)
    before = book.referenced.get(key)
    if isinstance(before, ReconciledDay) and (before.file_id is not None or cmd.file_id is None):
        raise Refused("break-state", f"{cmd.source} {cmd.account} of {cmd.day} is reconciled already.")
    named = {name: getattr(cmd, name) for name in ("source", "account", "day", "file_id")}
    figures = {name: getattr(cmd, name) for name in ("opening", "closing", "lines", "matched")}
    row = ReconciledDay(customer_id=book.customer_id, day_id=key, reconciled_at=ctx.now, **named, **figures)
    if isinstance(before, ReconciledDay):
        book.change(ReconciledDay, key, file_id=cmd.file_id, reconciled_at=ctx.now, **figures)
    else:
        book.draft.add(row)
    _keep(book, key, row)
    for nth, each in enumerate(cmd.opened):
        new = Break(
            customer_id=book.customer_id,
            break_id=command_id("break", f"{key}:{cmd.file_id}:{nth}"),
            seen_at=ctx.now,
            **named,
            **msgspec.structs.asdict(each),
        )
        book.draft.add(new)
        _keep(book, new.break_id, new)
    # One that two people closed in the meantime stays as they closed it.
    for break_id in filter(partial(_is_open, book), cmd.closed):
        _change(book, break_id, status=BreakStatus.CLOSED, resolution=Resolution.MATCHED, closed_at=ctx.now)
    for break_id, stated, booked in cmd.changed:
        if _is_open(book, break_id):
            _change(book, break_id, stated=stated, booked=booked)
    return {"day_id": str(key), "opened": len(cmd.opened), "closed": len(cmd.closed)}


@decides(AssignBreak)
def assign_break(books: Books, cmd: AssignBreak, ctx: Context) -> Outcome:
    """Name an owner, and note what is known. Refuses: break-state if it is closed."""
    del ctx
    book = book_of(books, cmd.customers[0])
    _change(book, cmd.break_id, owner=cmd.owner, note=cmd.note)
    return {"break_id": str(cmd.break_id), "owner": cmd.owner}


@decides(CloseBreak)
def close_break(books: Books, cmd: CloseBreak, ctx: Context) -> Outcome:
    """Close a break, and post its difference to the losses, or the units to the bank's inventory.

    Refuses: break-state if it is closed, differs from what was proposed, or has nothing to post to that account.
    """
    book = book_of(books, cmd.customers[0])
    row = _open_break(book, cmd.break_id)
    if row.difference != cmd.difference:
        raise Refused("break-state", "The break has changed since it was proposed. Propose it again.")
    entry_no = None
    if cmd.resolution != Resolution.EXPLAINED:
        if held_id(cmd.break_id) in book.referenced:
            raise Refused("break-state", "Its difference is held in suspense. The next statement closes the break.")
        _require_posting(row, cmd.resolution)
        entry_no = book.begin(
            JournalKind.RECONCILIATION, ctx, settles_on=ctx.business_date, business_date=book.business_date
        )
        if cmd.resolution == Resolution.LOSSES:
            reserve, losses = book.internal_account(AccountKind.RESERVE), book.internal_account(AccountKind.LOSSES)
            post_signed(book, reserve, losses, amount=row.difference)
        else:
            custodian, own = (
                book.internal_account(kind, row.subject) for kind in (AccountKind.CUSTODIAN, AccountKind.INVENTORY)
            )
            post_signed(book, custodian, own, amount=row.difference)
        book.close()
    closed = {"status": BreakStatus.CLOSED, "resolution": cmd.resolution, "entry_no": entry_no, "closed_at": ctx.now}
    _change(book, cmd.break_id, note=cmd.reason, **closed)
    return {"break_id": str(cmd.break_id), "status": BreakStatus.CLOSED, "journal_no": entry_no}


def _require_posting(row: Break, resolution: Resolution) -> None:
    """Refuse a posting that does not fit: `break-state`."""
    wanted = {
        Resolution.LOSSES: row.source == Source.RESERVE and row.cause not in {Cause.BALANCE, Cause.NO_STATEMENT},
        Resolution.INVENTORY: row.cause == Cause.DIFFERENT_UNITS,
    }
    if not (wanted.get(resolution) and row.difference):
        raise Refused("break-state", f"A break of the cause {row.cause} has nothing to post to {resolution.lower()}.")


def _is_open(book: Book, break_id: UUID) -> bool:
    found = book.referenced.get(break_id)
    return isinstance(found, Break) and found.status == BreakStatus.OPEN


def _open_break(book: Book, break_id: UUID) -> Break:
    found = book.referenced.get(break_id)
    if not isinstance(found, Break):
        raise NotFound(f"There is no break {break_id}.")
    if found.status != BreakStatus.OPEN:
        raise Refused("break-state", f"The break was closed on {found.closed_at}.")
    return found


def _change(book: Book, break_id: UUID, **columns: object) -> None:
    row = msgspec.structs.replace(_open_break(book, break_id), **columns)
    book.change(Break, break_id, **columns)
    _keep(book, break_id, row)


def _keep(book: Book, key: UUID, row: Break | ReconciledDay) -> None:
    book.keep_fingerprint(row)
    book.put(book.referenced, key, row)
