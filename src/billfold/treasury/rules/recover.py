"""What arrives in a pocket that owes something repays that first."""

from billfold.ledger.book import recording as record
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.context import Context
from billfold.ledger.types import Direction, TransactionType
from billfold.treasury.rules.unsettled import pay_from_cash


def overdraft_of(pocket: PocketBook) -> int:
    """Cents that the pocket owes."""
    return -pocket.owed.balance if pocket.owed is not None else 0


def recover_overdraft(book: Book, pocket: PocketBook, ctx: Context, amount: int) -> int:
    """Recover the overdraft out of `amount` cents on the bank account; return the cents recovered."""
    repaid = min(amount, overdraft_of(pocket))
    if repaid:
        pocket.outflow += repaid
        posting_no = book.post(pocket.bank, book.owed_account(pocket), repaid)
        record_overdraft(book, pocket, ctx, posting_no=posting_no, direction=Direction.DEBIT, cents=repaid)
    return repaid


def recover_overdraft_from_cash(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Recover what the pocket owes as far as its settled cash reaches, in the open journal."""
    settled = pocket.cash.balance - pocket.cash.reserved - pocket.unsettled_after(ctx.pricing_day)
    due = min(overdraft_of(pocket), settled)
    if due > 0:
        pay_from_cash(book, pocket, ctx, due)
        recover_overdraft(book, pocket, ctx, amount=due)


_TITLES = {
    Direction.CREDIT: ("Shortfall carried", "Carried by the bank until the next deposit"),
    Direction.DEBIT: ("Shortfall repaid", "Repaid from what arrived"),
}


def record_overdraft(
    book: Book, pocket: PocketBook, ctx: Context, posting_no: int, direction: Direction, cents: int
) -> None:
    """Record a transaction of what the pocket owes."""
    group = ctx.ids.next_group()
    title, description = _TITLES[direction]
    record.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.GENERIC,
        direction=direction,
        amount=cents,
        title=title,
        description=description,
        settles_at=book.booked_at,
        details={},
    )
