"""Cash back is the partner's share of cleared purchases less refunds, rounded once, up to a cap."""

from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import NOT_CLOSED
from billfold.payments.adjustments.rules import post_credit
from billfold.payments.cards.cash_back.commands import GiveCashBack
from billfold.payments.cards.cash_back.types import CashBackRow
from billfold.payments.cards.types import CardRow
from billfold.platform.errors import NotFound
from billfold.platform.money import round_half_up

_WHOLE = 10_000
"""Basis points."""


def cash_back_of(purchases: int, *, basis_points: int, cap: int | None) -> int:
    """Return the cash back of purchases less refunds, half up to the cent; of a negative sum nothing."""
    amount = round_half_up(max(purchases, 0) * basis_points, _WHOLE)
    return amount if cap is None else min(amount, cap)


@decides(GiveCashBack)
def give_cash_back(books: Books, cmd: GiveCashBack, ctx: Context) -> Outcome:
    """Credit a month's cash back to the card's Pocket; if that is closed, to the customer's oldest that is not.

    Without such a Pocket it is forfeited.
    """
    book = book_of(books, cmd.customers[0])
    card = book.referenced.get(cmd.card_id)
    if not isinstance(card, CardRow):
        raise NotFound("There is no such card.")
    month = cmd.purchases - cmd.refunds + cmd.carried_in
    amount = cash_back_of(month, basis_points=cmd.basis_points, cap=cmd.cap)
    pocket = _pocket_for(book, card) if amount else None
    if pocket is not None:
        post_credit(
            book,
            pocket,
            ctx,
            amount=amount,
            credit_type="CASH_BACK",
            description=f"Card ending in {card.last_four}, {cmd.period}",
            period=cmd.period,
            card_id=card.card_id,
        )
    row = CashBackRow(
        customer_id=book.customer_id,
        cash_back_id=cmd.cash_back_id,
        card_id=card.card_id,
        period=cmd.period,
        rule_version=cmd.rule_version,
        purchases=cmd.purchases,
        refunds=cmd.refunds,
        carried_in=cmd.carried_in,
        amount=amount,
        pocket_id=None if pocket is None else pocket.pocket_id,
        entry_no=None if pocket is None else book.entry_no,
        created_at=ctx.now,
    )
    book.draft.add(row)
    book.keep_fingerprint(row)
    return {"cash_back_id": str(row.cash_back_id), "amount": amount, "journal_no": row.entry_no}


def _pocket_for(book: Book, card: CardRow) -> PocketBook | None:
    own = book.pockets[card.pocket_id]
    if own.status in NOT_CLOSED:
        return own
    open_pockets = [each for each in book.pockets.values() if each.status in NOT_CLOSED]
    return min(open_pockets, key=lambda each: (each.opened_at, each.bank.no), default=None)
