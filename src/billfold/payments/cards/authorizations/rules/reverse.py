"""Holds end without a payment: reversed by the merchant or the network, or expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from billfold.accounts.pockets.rules import pocket_of
from billfold.events import kinds
from billfold.ledger.commands import (Books, Outcome, book_of)
from billfold.ledger.context import (Context)
from billfold.ledger.types import JournalKind
from billfold.payments.cards.authorizations.rules.holds import (
    card_of,
    decided,
    find_authorization,
    move_hold,
    new_authorization,
    raise_card_event,
    store_authorization,
    use_released,
)
from billfold.payments.cards.authorizations.types import AuthorizationStatus, Decision, DeclineReason
from billfold.treasury.rules.day_end import roll_business_day

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.payments.cards.authorizations.commands import ExpireAuthorization, ReverseAuthorization
    from billfold.payments.cards.authorizations.types import AuthorizationRow


def reverse_authorization(books: Books, cmd: ReverseAuthorization, ctx: Context) -> Outcome:
    """Release what is held of a purchase, or part of it.

    A reversal is never declined. One that comes before its authorization takes its place; one that comes after
    the clearing releases nothing: the merchant pays back by a refund. One of nothing changes nothing.
    """
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    row = find_authorization(book, cmd.card_id, cmd.network_reference)
    if row is None and cmd.amount != 0:
        row = new_authorization(card, cmd, ctx, status=AuthorizationStatus.REVERSED, merchant=cmd.merchant)
        store_authorization(book, None, row, ctx)
        return decided(row, Decision.APPROVED, 0)
    if row is None or row.status != AuthorizationStatus.PENDING:
        return decided(row, Decision.APPROVED, 0)
    cents = row.remaining if cmd.amount is None else min(cmd.amount, row.remaining)
    if not cents:
        return decided(row, Decision.APPROVED, 0)
    _release(book, row, ctx, cents=cents, is_late=cmd.is_late)
    raise_card_event(book, ctx, kinds.CARD_REVERSED, card=card, cents=cents)
    return decided(row, Decision.APPROVED, cents)


def expire_authorization(books: Books, cmd: ExpireAuthorization, ctx: Context) -> Outcome:
    """Release a hold whose time is over by `due`. One that was renewed or has ended stays as it is."""
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    row = find_authorization(book, cmd.card_id, cmd.network_reference)
    if row is not None and row.status == AuthorizationStatus.PENDING and row.expires_at <= cmd.due:
        _release(book, row, ctx, cents=row.remaining, ends=AuthorizationStatus.EXPIRED)
        raise_card_event(book, ctx, kinds.CARD_REVERSED, card=card, cents=row.remaining)
    return decided(row, Decision.APPROVED, 0)


def _release(
    book: Book,
    row: AuthorizationRow,
    ctx: Context,
    *,
    cents: int,
    ends: AuthorizationStatus = AuthorizationStatus.REVERSED,
    is_late: bool = False,
) -> None:
    """Release so many cents of a hold, and use them."""
    pocket = pocket_of(book, row.pocket_id)
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.CARD, ctx, settles_on=ctx.settles_on)
    changed = move_hold(book, pocket, row, ctx, cents=row.remaining - cents)
    use_released(book, pocket, ctx)
    book.close()
    if ends == AuthorizationStatus.REVERSED:
        changed = msgspec.structs.replace(changed, reversed=row.reversed + cents)
    if not changed.remaining:
        changed = msgspec.structs.replace(changed, status=AuthorizationStatus.CLEARED if row.cleared else ends)
        if is_late and not row.cleared:
            changed = msgspec.structs.replace(
                changed, status=AuthorizationStatus.DECLINED, reason=DeclineReason.TIMED_OUT
            )
    store_authorization(book, row, changed, ctx)
