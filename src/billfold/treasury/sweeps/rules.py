"""What arrives on the bank account is swept into cash and invested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.treasury.rules.invest import invest
from billfold.treasury.rules.recover import recover_overdraft

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.book.holdings import PocketBook
    from billfold.ledger.commands import Context


def sweep_and_invest(book: Book, pocket: PocketBook, ctx: Context, amount: int) -> None:
    """Repay the overdraft, sweep the rest into cash, and invest the cash in bills."""
    pocket.inflow += amount
    if pocket.owed is not None:
        amount -= recover_overdraft(book, pocket, ctx, amount=amount)
    if amount:
        book.post(pocket.bank, pocket.cash, amount)
    invest(book, pocket, ctx)
