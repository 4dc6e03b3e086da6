"""Withdrawals from a pocket: bills become cash, and cash is paid over the bank account to the recipient."""

from typing import Final, NamedTuple

from billfold.bills.rules import fees
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Account, PocketBook
from billfold.ledger.context import Context, SaleTerms
from billfold.platform.errors import Refused
from billfold.platform.money import format_usd
from billfold.treasury.rules.day_end import charge_fee
from billfold.treasury.rules.liquidate import liquidation_value, raise_cash, sell_all
from billfold.treasury.rules.unsettled import Proceeds, free_cash, pay_from_cash


class InsufficientFunds(Exception):
    """The pocket cannot raise the amount. The caller undoes the journal entry it began."""


def insufficient_funds(
    detail: str, book: Book, pocket: PocketBook, ctx: Context, *, amount: int | None, fee: int = 0
) -> Refused:
    """Return the refusal of a payment that the pocket cannot raise, with what its explanation begins with."""
    refused = Refused("insufficient-funds", detail)
    if amount is not None:
        key = {"customer_id": str(book.customer_id), "pocket_id": str(pocket.pocket_id)}
        refused.about = {**key, "at": ctx.now.isoformat(), "amount": amount, "fee": fee}
    return refused


class Withdrawn(NamedTuple):
    """The cents paid, the number of the posting that pays them, and the part that settles later."""

    amount: int
    posting_no: int
    unsettled: Proceeds | None


def require_at_most(most: int | None, amount: int) -> None:
    """Refuse an amount above what the approvers of a full withdrawal could expect. Raises Refused."""
    if most is not None and amount > most:
        raise Refused(
            "amount-not-allowed",
            f"The Pocket holds {format_usd(amount)}, and at most {format_usd(most)} was requested. Request it again.",
        )


NOTHING_TO_MOVE: Final = "NOTHING_TO_MOVE"
"""The reason of a transfer whose amount was decided when it was due, and is zero."""


def payable_cents(pocket: PocketBook, ctx: Context, terms: SaleTerms | None = None) -> int:
    """Return the most that a payment can raise from the pocket, today or on these terms, without fees and holds."""
    return max(liquidation_value(pocket, terms or ctx.same_day) - _kept_cents(pocket, ctx), 0)


def require_something(cents: int, *, at_most: int | None) -> int:
    """Return the cents of an amount that is decided now, within its maximum. Raises Refused `nothing-to-move`."""
    if cents <= 0:
        raise Refused("nothing-to-move", "There is nothing to move: the amount is zero now.")
    return cents if at_most is None else min(cents, at_most)


def _kept_cents(pocket: PocketBook, ctx: Context) -> int:
    """Return the cents that a payment leaves in the pocket: accrued fees and holds."""
    kept = fees.split_accrued_fee(pocket.fee_accrued)[0]
    return kept + pocket.held_cents(ctx.now, ctx.calendars) if pocket.liens else kept


def withdraw(
    book: Book,
    pocket: PocketBook,
    ctx: Context,
    amount: int | None,
    *,
    terms: SaleTerms,
    to: Account,
    fee_reserve: int = 0,
) -> Withdrawn:
    """Pay `amount` cents (None: everything, net of fees) to `to`, in the open journal entry.

    Accrued fees and holds stay in the pocket. `fee_reserve` cents are raised in addition and stay in cash, for a
    fee that the caller takes in the same journal entry. Raises InsufficientFunds when the pocket cannot raise it.
    """
    if amount is None:
        sell_all(book, pocket, ctx, terms=terms)
        charge_fee(book, pocket, ctx)
        amount = pocket.cash.balance - pocket.cash.reserved - fee_reserve
        if amount <= 0 or pocket.held_cents(ctx.now, ctx.calendars):
            raise InsufficientFunds
    else:
        need = amount + fee_reserve
        kept = _kept_cents(pocket, ctx)
        if kept and free_cash(pocket, terms) - kept < need and liquidation_value(pocket, terms) - kept < need:
            raise InsufficientFunds
        if not raise_cash(book, pocket, ctx, need=need, terms=terms):
            raise InsufficientFunds
    unsettled = pay_from_cash(book, pocket, ctx, amount)
    posting_no = book.post(pocket.bank, to, amount)
    pocket.outflow += amount
    return Withdrawn(amount, posting_no, unsettled)
