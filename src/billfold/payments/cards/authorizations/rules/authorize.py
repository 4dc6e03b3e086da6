"""Authorization of a card payment: approved in full or in part, or declined with a reason.

An approved amount is held: exactly the bills needed are sold, and their cash is reserved. An advice is a
decision by others, such as the processor while the bank was unavailable, and cannot be declined.
"""

import msgspec

from billfold.accounts.agreements.rules import require_accepted
from billfold.accounts.pockets.rules import pocket_of, require_open
from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import JournalKind, PocketStatus
from billfold.payments.cards.authorizations.commands import (
    AuthorizationRow,
    AuthorizationStatus,
    AuthorizeCard,
    CardLimitsRow,
    CardRequest,
    CardSpending,
    Decision,
    DeclineReason,
    EntryMode,
    IncrementAuthorization,
    InquireBalance,
    SetCardLimits,
    spending_id_of,
)
from billfold.payments.cards.authorizations.rules.holds import (
    card_of,
    expiry_of,
    find_authorization,
    message_outcome,
    move_hold,
    new_authorization,
    raise_card_event,
    store_authorization,
)
from billfold.payments.cards.commands import CardRow, CardStatus, MagstripeStatus
from billfold.payments.cards.rules import require_not_closed
from billfold.platform.errors import Refused
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.liquidate import liquidation_value, raise_cash
from billfold.treasury.rules.overdraft import advance
from billfold.treasury.rules.unsettled import free_cash
from billfold.treasury.rules.withdraw import payable_cents


@decides(SetCardLimits)
def set_card_limits(books: Books, cmd: SetCardLimits, ctx: Context) -> Outcome:
    """Replace the limits of a card. Refuses: already-closed."""
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
    book.keep_fingerprint(row)
    event(book, ctx, kinds.CARD_LIMITS_UPDATED, kinds.CardPayload(card_id=card.card_id))
    return {"card_id": str(card.card_id)}


def find_exceeded(book: Book, card: CardRow, ctx: Context, *, category: str, cents: int) -> DeclineReason | None:
    """Return the card limit that a payment of today would exceed."""
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


_UNUSABLE = {
    CardStatus.NOT_ACTIVATED: DeclineReason.CARD_NOT_ACTIVATED,
    CardStatus.OFFLINE: DeclineReason.CARD_OFFLINE,
    CardStatus.FROZEN: DeclineReason.CARD_FROZEN,
    CardStatus.CLOSED: DeclineReason.CARD_CLOSED,
}
CASH_CATEGORIES = frozenset({"6010", "6011"})
"""Merchant categories of ISO 18245 for cash, at a counter or an ATM."""
_FINISHED = frozenset({AuthorizationStatus.REVERSED, AuthorizationStatus.CLEARED, AuthorizationStatus.EXPIRED})


@decides(AuthorizeCard)
def authorize_card(books: Books, cmd: AuthorizeCard, ctx: Context) -> Outcome:
    """Approve a purchase and hold its amount, or decline it. NotFound for a card of another customer."""
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    earlier = find_authorization(book, cmd.card_id, cmd.network_reference)
    if cmd.is_advice:
        return _hold_advised(book, card, cmd, ctx, earlier=earlier)
    if earlier is not None:
        raise_card_event(book, ctx, kinds.CARD_REJECTED, card=card, cents=cmd.amount)
        return message_outcome(earlier, Decision.DECLINED, 0, DeclineReason.DUPLICATE)
    cents, reason = _decide_amount(book, card, cmd, ctx, category=cmd.merchant.category_code)
    if reason is not None:
        return _decline(book, card, cmd, ctx, reason=reason)
    if not cents:  # only checks that the card is valid
        return message_outcome(None, Decision.APPROVED, 0)
    row = new_authorization(card, cmd, ctx, status=AuthorizationStatus.PENDING, merchant=cmd.merchant)
    row = _hold_more(book, row, ctx, more=cents)
    store_authorization(book, None, row, ctx)
    raise_card_event(book, ctx, kinds.CARD_APPROVED, card=card, cents=cents)
    raise_card_event(book, ctx, kinds.CARD_ON_HOLD, card=card, cents=cents)
    decision = Decision.APPROVED if cents == cmd.amount else Decision.PARTIALLY_APPROVED
    return message_outcome(row, decision, cents) | {"hold_entry_no": row.hold_entry_no}


@decides(IncrementAuthorization)
def increment_authorization(books: Books, cmd: IncrementAuthorization, ctx: Context) -> Outcome:
    """Hold more for a purchase and extend the hold; or decline it and leave the hold unchanged."""
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    row = find_authorization(book, cmd.card_id, cmd.network_reference)
    if row is None or row.status != AuthorizationStatus.PENDING:
        raise_card_event(book, ctx, kinds.CARD_REJECTED, card=card, cents=cmd.amount)
        return message_outcome(row, Decision.DECLINED, 0, DeclineReason.NO_AUTHORIZATION)
    cents, reason = _decide_amount(book, card, cmd, ctx, category=row.category_code)
    if reason is not None:
        raise_card_event(book, ctx, kinds.CARD_REJECTED, card=card, cents=cmd.amount)
        return message_outcome(row, Decision.DECLINED, 0, reason)
    if cents:
        store_authorization(book, row, _hold_more(book, row, ctx, more=cents), ctx)
        raise_card_event(book, ctx, kinds.CARD_ON_HOLD, card=card, cents=cents)
    return message_outcome(row, Decision.APPROVED if cents == cmd.amount else Decision.PARTIALLY_APPROVED, cents)


@decides(InquireBalance)
def inquire_balance(books: Books, cmd: InquireBalance, ctx: Context) -> Outcome:
    """Return the amount that the card could pay now."""
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    reason = _unusable_reason(book, card, cmd.entry_mode, ctx)
    if reason is not None:
        return message_outcome(None, Decision.DECLINED, 0, reason)
    return message_outcome(None, Decision.APPROVED, payable_cents(pocket_of(book, card.pocket_id), ctx))


# -- conditions -----------------------------------------------------------------------


def _decide_amount(
    book: Book, card: CardRow, cmd: CardRequest, ctx: Context, *, category: str
) -> tuple[int, DeclineReason | None]:
    """Return the approved cents, or why nothing is approved."""
    reason = _unusable_reason(book, card, cmd.entry_mode, ctx) or _control_violation(
        book, card, ctx, category=category, cents=cmd.amount
    )
    if reason is not None:
        return 0, reason
    pocket = pocket_of(book, card.pocket_id)
    payable = payable_cents(pocket, ctx) if cmd.amount else 0
    if payable >= cmd.amount:
        return cmd.amount, None
    cents = _in_part(cmd, payable, category=category)
    return cents, None if cents else DeclineReason.INSUFFICIENT_FUNDS


def _in_part(cmd: CardRequest, payable: int, *, category: str) -> int:
    """Return the part to approve if the pocket cannot pay all: never cash, and only what the terminal allows."""
    is_cash = cmd.entry_mode == EntryMode.ATM or category in CASH_CATEGORIES
    purchase = 0 if is_cash else cmd.amount - cmd.cash
    if cmd.is_partial_allowed:
        return min(payable, purchase)
    return purchase if cmd.is_purchase_only_allowed and payable >= purchase else 0


def _unusable_reason(book: Book, card: CardRow, entry_mode: EntryMode | None, ctx: Context) -> DeclineReason | None:
    """Return why the card cannot pay at all now."""
    if card.status in _UNUSABLE:
        return _UNUSABLE[card.status]
    if card.expires_on < ctx.today:
        return DeclineReason.CARD_EXPIRED
    if entry_mode == EntryMode.MAGSTRIPE and card.magstripe_status != MagstripeStatus.ON:
        return DeclineReason.MAGSTRIPE_OFF
    try:
        require_open(book, pocket_of(book, card.pocket_id))
        require_accepted(book, ctx)
    except Refused as refusal:
        return DeclineReason(refusal.code.upper().replace("-", "_"))
    return None


def _control_violation(book: Book, card: CardRow, ctx: Context, *, category: str, cents: int) -> DeclineReason | None:
    """Return why this payment is not allowed, regardless of the balance."""
    if category in ctx.terms.card_blocked_categories:
        return DeclineReason.CATEGORY_BLOCKED
    if ctx.terms.screening.stops_card(cents):
        return DeclineReason.SUSPECTED_FRAUD
    return find_exceeded(book, card, ctx, category=category, cents=cents)


def _decline(book: Book, card: CardRow, cmd: AuthorizeCard, ctx: Context, reason: DeclineReason) -> Outcome:
    row = new_authorization(card, cmd, ctx, status=AuthorizationStatus.DECLINED, merchant=cmd.merchant)
    row = msgspec.structs.replace(row, reason=reason)
    store_authorization(book, None, row, ctx)
    raise_card_event(book, ctx, kinds.CARD_REJECTED, card=card, cents=cmd.amount)
    return message_outcome(row, Decision.DECLINED, 0, reason)


# -- holding --------------------------------------------------------------------------


def _hold_more(book: Book, row: AuthorizationRow, ctx: Context, *, more: int) -> AuthorizationRow:
    """Hold an additional amount, which the pocket has."""
    pocket = pocket_of(book, row.pocket_id)
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.CARD, ctx, settles_on=ctx.business_date)
    raise_cash(book, pocket, ctx, need=more, terms=ctx.same_day)
    row = move_hold(book, pocket, row, ctx, cents=row.remaining + more)
    book.close()
    return _raise_amount(row, ctx, more=more)


def _raise_amount(row: AuthorizationRow, ctx: Context, *, more: int) -> AuthorizationRow:
    """Return an authorization raised by an amount: its time starts again, and today's limits count the increase."""
    return msgspec.structs.replace(
        row,
        approved=row.approved + more,
        authorized_on=ctx.today,
        spent_before=row.spent_before if row.authorized_on == ctx.today else row.spent,
        expires_at=expiry_of(row.category_code, ctx),
    )


def _hold_advised(
    book: Book, card: CardRow, cmd: AuthorizeCard, ctx: Context, *, earlier: AuthorizationRow | None
) -> Outcome:
    """Hold at least what others have approved; nothing if it is finished, or if the pocket is closed.

    The bank advances any shortfall. A new entry holds it, also if the bank holds enough: its own approval may turn out
    to be late, and is then reversed.
    """
    row = earlier or new_authorization(card, cmd, ctx, status=AuthorizationStatus.PENDING, merchant=cmd.merchant)
    more = max(cmd.amount - (row.approved - row.reversed), 0)
    pocket = pocket_of(book, card.pocket_id)
    if not (row.remaining or more) or row.status in _FINISHED or pocket.status == PocketStatus.CLOSED:
        return message_outcome(earlier, Decision.APPROVED, cmd.amount)
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.CARD, ctx, settles_on=ctx.business_date)
    if more:
        _raise_or_advance(book, pocket, ctx, cents=more)
    held = move_hold(book, pocket, row, ctx, cents=row.remaining + more)
    book.close()
    held = msgspec.structs.replace(_raise_amount(held, ctx, more=more), status=AuthorizationStatus.PENDING, reason=None)
    store_authorization(book, earlier, held, ctx)
    if row.status == AuthorizationStatus.DECLINED or earlier is None:
        raise_card_event(book, ctx, kinds.CARD_APPROVED, card=card, cents=cmd.amount)
    if more:
        raise_card_event(book, ctx, kinds.CARD_ON_HOLD, card=card, cents=more)
    return message_outcome(held, Decision.APPROVED, cmd.amount)


def _raise_or_advance(book: Book, pocket: PocketBook, ctx: Context, *, cents: int) -> None:
    """Raise this amount of free cash in the open journal entry; the shortfall becomes an overdraft of the pocket."""
    terms = ctx.same_day
    covered = cents if cents <= free_cash(pocket, terms) else min(cents, liquidation_value(pocket, terms))
    if covered > 0:
        raise_cash(book, pocket, ctx, need=covered, terms=terms)
    if covered < cents:
        advance(book, pocket, ctx, cents=cents - covered)
