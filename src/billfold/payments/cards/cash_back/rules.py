"""Cash back is the partner's share of cleared purchases less refunds, rounded once, up to a cap."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Command, Outcome, Reference, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import NOT_CLOSED
from billfold.payments.adjustments.rules import post_credit
from billfold.payments.cards.commands import CardRow
from billfold.platform.database.rows import Row
from billfold.platform.errors import NotFound
from billfold.platform.money import round_half_up

CASH_BACK_JOB: Final = "card.cash_back"
"""Gives the cash back of a past month; its object is the partner."""
NEVER_PURCHASES: Final = ("6010", "6011")
"""Cash categories, at a counter or an ATM (ISO 18245): no rule counts them."""
BASIS_POINTS_MAX: Final = 1_000


class CashBackRule(msgspec.Struct, frozen=True, kw_only=True):
    """A partner's rule from a month on. `customer_id` is the partner's own; `cap` is per card and month."""

    customer_id: UUID
    version: int
    partner_id: UUID
    from_month: str
    basis_points: int
    excluded_categories: list[str]
    cap: int | None
    created_at: datetime


class CardMonth(msgspec.Struct, frozen=True, kw_only=True):
    """Purchases and refunds of a card in a month, booked by its end.

    `carried_in`, zero or below, is the deduction for refunds of the customer's other cards, and of earlier months.
    """

    customer_id: UUID
    card_id: UUID
    purchases: int
    refunds: int
    carried_in: int


class CashBackRow(Row, frozen=True, kw_only=True):
    """Cash back of a card for a month; without `entry_no` it was zero, or no Pocket was open to receive it."""

    table = "cash_back"
    key_column = "cash_back_id"
    fingerprinted = True

    customer_id: UUID
    cash_back_id: UUID
    card_id: UUID
    period: str
    rule_version: int
    purchases: int
    refunds: int
    carried_in: int
    amount: int
    pocket_id: UUID | None
    entry_no: int | None
    created_at: datetime


class GiveCashBack(Command, frozen=True, kw_only=True):
    """Give a card's cash back for a month, by a version of the partner's rule. Amounts are cents."""

    reference_kinds = (Reference.CARD,)
    cash_back_id: UUID
    card_id: UUID
    period: str
    rule_version: int
    basis_points: int
    cap: int | None
    purchases: int
    refunds: int
    carried_in: int


_WHOLE = 10_000
"""Basis points."""


def cash_back_of(purchases: int, *, basis_points: int, cap: int | None) -> int:
    """Return the cash back for purchases less refunds, half up to the cent; zero for a negative sum."""
    amount = round_half_up(max(purchases, 0) * basis_points, _WHOLE)
    return amount if cap is None else min(amount, cap)


@decides(GiveCashBack)
def give_cash_back(books: Books, cmd: GiveCashBack, ctx: Context) -> Outcome:
    """Credit a month's cash back to the card's Pocket; if that is closed, to the customer's oldest open one.

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
