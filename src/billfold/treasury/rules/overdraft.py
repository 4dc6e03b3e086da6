"""The overdraft of a pocket: money claimed back, and recovered from what arrives.

A clawback is never refused. The pocket's bills are sold, the bank advances the rest on the
pocket's account `owed`, and everything that arrives later recovers that first, redeemed bills included. So an
overdrawn pocket holds only matured bills and cash reserved for card payments.
The customer sees both as transactions of kind GENERIC.
"""

from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Account, PocketBook
from billfold.ledger.context import Context, SaleTerms
from billfold.ledger.types import Direction, TransactionType
from billfold.treasury.rules.liquidate import liquidation_value, raise_cash
from billfold.treasury.rules.unsettled import free_cash, pay_from_cash


def overdraft_of(pocket: PocketBook) -> int:
    """Return the cents that the pocket owes."""
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
    """Recover the overdraft from settled cash as far as it reaches, in the open journal entry."""
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
    """Record a transaction for an overdraft or its recovery."""
    group = ctx.ids.next_group()
    title, description = _TITLES[direction]
    recording.transaction(
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


def claw_back(book: Book, pocket: PocketBook, ctx: Context, amount: int, *, to: Account, terms: SaleTerms) -> int:
    """Pay `amount` cents to `to` in the open journal, covered or not; return that posting's number.

    Holds and accrued fees do not limit it. The caller records the transaction of the posting.
    """
    covered = amount if amount <= free_cash(pocket, terms) else min(amount, liquidation_value(pocket, terms))
    if covered > 0:
        raise_cash(book, pocket, ctx, need=covered, terms=terms)
        pay_from_cash(book, pocket, ctx, covered)
    if covered < amount:
        _extend_overdraft(book, pocket, ctx, cents=amount - covered)
    pocket.outflow += amount
    return book.post(pocket.bank, to, amount)


def advance(book: Book, pocket: PocketBook, ctx: Context, *, cents: int) -> None:
    """Lend the pocket cash that it needs at once, in the open journal entry."""
    _extend_overdraft(book, pocket, ctx, cents=cents)
    book.post(pocket.bank, pocket.cash, cents)


def recover_overdraft_by_selling(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Sell bills that arrived in kind to recover the overdraft, in the open journal entry."""
    owed = overdraft_of(pocket)
    due = min(owed, liquidation_value(pocket, ctx.same_day)) if owed else 0
    if due > 0:
        raise_cash(book, pocket, ctx, need=due, terms=ctx.same_day)
        recover_overdraft_from_cash(book, pocket, ctx)


def _extend_overdraft(book: Book, pocket: PocketBook, ctx: Context, cents: int) -> None:
    """Advance the rest from the bank and record the claim."""
    pocket.inflow += cents
    posting_no = book.post(book.owed_account(pocket), pocket.bank, cents)
    record_overdraft(book, pocket, ctx, posting_no=posting_no, direction=Direction.CREDIT, cents=cents)
