"""Sweeps money that arrives on the bank account into cash, and invests it."""

from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.context import Context
from billfold.treasury.rules.invest import invest
from billfold.treasury.rules.overdraft import recover_overdraft
from billfold.treasury.rules.unsettled import Proceeds, add_unsettled


def sweep_and_invest(
    book: Book, pocket: PocketBook, ctx: Context, amount: int, *, unsettled: Proceeds | None = None
) -> None:
    """Repay the overdraft, sweep the rest into cash, and invest it; `unsettled` is part of the amount."""
    pocket.inflow += amount
    if pocket.owed is not None:
        amount -= recover_overdraft(book, pocket, ctx, amount=amount)
    if amount:
        book.post(pocket.bank, pocket.cash, amount)
    if unsettled is not None and amount:
        add_unsettled(book, pocket, ctx, unsettled._replace(cents=min(unsettled.cents, amount)))
    invest(book, pocket, ctx)
