"""What a card may spend in a day: in all, and by merchant category. A limit of zero blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from billfold.ledger.commands import (Books, Outcome, book_of)
from billfold.ledger.context import (Context)
from billfold.payments.cards.authorizations.rules.holds import card_of
from billfold.payments.cards.authorizations.types import CardLimitsRow, CardSpending, DeclineReason, spending_id_of
from billfold.payments.cards.rules import require_not_closed

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.payments.cards.authorizations.commands import SetCardLimits
    from billfold.payments.cards.types import CardRow


def set_card_limits(books: Books, cmd: SetCardLimits, ctx: Context) -> Outcome:
    """Set the limits of a card in place of those it had. Refuses: already-closed."""
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    require_not_closed(card)
    seen = _spending(book, card)
    row = CardLimitsRow(
        customer_id=book.customer_id,
        card_id=card.card_id,
        daily=cmd.daily,
        categories=msgspec.json.encode(cmd.categories, order="sorted").decode(),
        created_at=ctx.now if seen.limits is None else seen.limits.created_at,
        updated_at=ctx.now,
    )
    if seen.limits is None:
        book.draft.add(row)
    else:
        book.change(CardLimitsRow, card.card_id, daily=row.daily, categories=row.categories, updated_at=ctx.now)
    book.put(book.referenced, spending_id_of(card.card_id), msgspec.structs.replace(seen, limits=row))
    book.keep_fingerprint(CardLimitsRow, card.card_id, row.proof)
    return {"card_id": str(card.card_id)}


def find_exceeded(book: Book, card: CardRow, ctx: Context, *, category: str, cents: int) -> DeclineReason | None:
    """Return which limit of its card a payment of today would exceed."""
    seen = _spending(book, card)
    if seen.limits is None:
        return None
    spent = seen.spent if seen.day == ctx.today else {}
    by_category = msgspec.json.decode(seen.limits.categories, type=dict[str, int])
    limit = by_category.get(category)
    if limit is not None and spent.get(category, 0) + cents > limit:
        return DeclineReason.CATEGORY_LIMIT if limit else DeclineReason.CATEGORY_BLOCKED
    if seen.limits.daily is not None and sum(spent.values()) + cents > seen.limits.daily:
        return DeclineReason.CARD_LIMIT
    return None


def _spending(book: Book, card: CardRow) -> CardSpending:
    return book.referenced.get(spending_id_of(card.card_id)) or CardSpending(None, None, {})
