"""Unsettled cash: the proceeds of a next-day sale, until that day.

It buys bills that settle no earlier, and pays for payments that leave no earlier. Until then it is worth what the
sale would have brought for the same day, so early use costs its discount as a fee.
Otherwise a transfer between two pockets after the close would earn interest on money that is already spent.
"""

from datetime import date
from typing import NamedTuple

from billfold.bills.rules.lots import allocate_basis
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.context import Context, SaleTerms
from billfold.ledger.types import AccountKind, Direction, TransactionType

_RATE_SCALE = 100_000
"""Rates are in thousandths of a percent."""
_DISCOUNT_YEAR_DAYS = 360
_TERM_DAYS_MAX = 366
_BPS = 10_000


class Proceeds(NamedTuple):
    """Cents that settle on a day, and the cost in cents of using them now."""

    cents: int
    discount: int
    settles_on: date


def free_cash(pocket: PocketBook, terms: SaleTerms) -> int:
    """Return the cents that the pocket can pay on these terms without selling a bill."""
    cash = pocket.cash.balance - pocket.cash.reserved
    return cash - pocket.unsettled_discount if pocket.unsettled_after(terms.cash_on) else cash


def add_unsettled(book: Book, pocket: PocketBook, ctx: Context, proceeds: Proceeds) -> None:
    """Add cash that settles later to the pocket, and drop proceeds that have settled by now."""
    book.alter(pocket)
    if not pocket.unsettled_after(ctx.pricing_day):
        pocket.unsettled, pocket.unsettled_discount, pocket.unsettled_on = 0, 0, proceeds.settles_on
    assert pocket.unsettled_on is not None
    pocket.unsettled += proceeds.cents
    pocket.unsettled_discount += proceeds.discount
    pocket.unsettled_on = max(pocket.unsettled_on, proceeds.settles_on)


def take_unsettled(book: Book, pocket: PocketBook, ctx: Context, at_most: int) -> Proceeds | None:
    """Take at most `at_most` unsettled cents with their share of the discount; None if there are none."""
    cents = min(at_most, pocket.unsettled_after(ctx.pricing_day))
    if cents <= 0:
        return None
    assert pocket.unsettled_on is not None
    discount = allocate_basis(pocket.unsettled_discount, cents, pocket.unsettled)
    book.alter(pocket)
    pocket.unsettled -= cents
    pocket.unsettled_discount -= discount
    return Proceeds(cents, discount, pocket.unsettled_on)


def pay_from_cash(book: Book, pocket: PocketBook, ctx: Context, cents: int) -> Proceeds | None:
    """Move cash to the bank account, settled cash first; return the unsettled cash among it."""
    book.post(pocket.cash, pocket.bank, cents)
    pocket.uninvested = min(pocket.uninvested, pocket.cash.balance)
    left = pocket.cash.balance - pocket.cash.reserved
    return take_unsettled(book, pocket, ctx, pocket.unsettled_after(ctx.pricing_day) - left)


def settle_early(book: Book, pocket: PocketBook, ctx: Context, need: int) -> int:
    """Settle cash early, for a fee in the open journal entry, until it covers the need.

    Return the cents settled, net of the fee; fewer than needed if there is no more.
    """
    settles_on = pocket.unsettled_on
    all_cents, all_discount = pocket.unsettled, pocket.unsettled_discount
    settled = min(need, all_cents - all_discount)
    if settled <= 0:
        return 0
    # Rounded up, so that many small payments cost no less than one.
    cents = -(-settled * all_cents // (all_cents - all_discount))
    fee = min(cents - settled, all_discount)
    book.alter(pocket)
    pocket.unsettled -= settled + fee
    pocket.unsettled_discount -= fee
    if fee:
        _charge(book, pocket, ctx, fee=fee, description=f"Proceeds that settle on {settles_on} used before that day")
    return settled


def unsettled_arrival(cents: int, ctx: Context, settles_on: date) -> Proceeds | None:
    """Return money that has arrived as unsettled cash; None if it has settled.

    Its discount is the most that early use can gain: the loss of a bill at the highest rate.
    """
    days = (settles_on - ctx.pricing_day).days
    if days <= 0:
        return None
    rate = max(0, *(milli for _, milli in ctx.market.curve(ctx.pricing_day)[1]))
    interest = -(-cents * rate * days // (_DISCOUNT_YEAR_DAYS * _RATE_SCALE - rate * _TERM_DAYS_MAX))
    return Proceeds(cents, min(interest - (-cents * ctx.terms.haircut_bps // _BPS), cents), settles_on)


def _charge(book: Book, pocket: PocketBook, ctx: Context, *, fee: int, description: str) -> None:
    book.post(pocket.cash, pocket.bank, fee)
    pocket.uninvested = min(pocket.uninvested, pocket.cash.balance)
    pocket.fees += fee
    recording.transaction(
        book,
        pocket,
        posting_no=book.post(pocket.bank, book.internal_account(AccountKind.FEES), fee),
        group=ctx.ids.next_group(),
        type=TransactionType.FEE,
        direction=Direction.DEBIT,
        amount=fee,
        title="Same-day fee",
        description=description,
        settles_at=book.booked_at,
        details={"fee_type": "SAME_DAY_FEE", "related_transaction_id": None},
    )
