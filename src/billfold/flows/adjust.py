"""What the operator gives and takes by hand: credits, adjustments, and corrections of either.

All of it comes from the house's account `promotions`, a fee that is given back from `fees`. What
is taken back is never refused: what the pocket has spent of it, it owes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import msgspec

from billfold.domain import tbills
from billfold.domain.activity.types import HouseBooking
from billfold.flows import record
from billfold.flows.command import Books, Command, Context, Outcome, book_of
from billfold.flows.day_end import start_moving
from billfold.flows.liquidate import liquidation_value
from billfold.flows.owing import owes, pay_back
from billfold.flows.pockets import pocket_of
from billfold.flows.receive import take_in
from billfold.kit.errors import NotFound, Refused
from billfold.kit.ids import member_of

if TYPE_CHECKING:
    from billfold.flows.book import Book
    from billfold.flows.holdings import Account, PocketBook


class GiveCredit(Command, frozen=True, kw_only=True):
    """Give a pocket `amount` cents: cash back, a promotion, or an adjustment in its favour."""

    needs_names: ClassVar[bool] = False

    pocket_id: UUID
    amount: int
    credit_type: str  # "CASH_BACK", "PROMOTION" or "ADJUSTMENT"
    description: str


class AdjustPocket(Command, frozen=True, kw_only=True):
    """Set a pocket right by `amount` cents. A DEBIT must be covered."""

    needs_names: ClassVar[bool] = False

    pocket_id: UUID
    direction: str
    amount: int
    description: str


class CorrectBooking(Command, frozen=True, kw_only=True):
    """Take back one credit, adjustment or fee, whole and once. Looks at the activity."""

    needs_names: ClassVar[bool] = False

    activity_id: UUID
    description: str


ADJUSTMENT, CORRECTION = "ADJUSTMENT", "CORRECTION"
_JOURNAL = "adjustment"
_OWN_JOURNALS = frozenset({"fee", _JOURNAL})
"""Journals in which nothing else is that somebody may want to take back."""


def give_credit(books: Books, cmd: GiveCredit, ctx: Context) -> Outcome:
    """Book it from `promotions`. Refuses: pocket-not-open."""
    book = book_of(books, cmd.customers[0])
    pocket = _that_takes(pocket_of(book, cmd.pocket_id), cmd.amount)
    details = {"credit_type": cmd.credit_type, "period": None, "card_id": None}
    _begin(book, pocket, ctx)
    leg_no = _credit(book, pocket, ctx, book.house_account("promotions"), cmd.amount)
    return _tell(
        book, pocket, ctx, leg_no, type="CREDIT", direction="CREDIT", amount=cmd.amount,
        title=_CREDIT[cmd.credit_type], description=cmd.description, details=details,
    )  # fmt: skip


def adjust_pocket(books: Books, cmd: AdjustPocket, ctx: Context) -> Outcome:
    """Book it against `promotions`. Refuses: pocket-not-open, insufficient-funds."""
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    there = book.house_account("promotions")
    if cmd.direction == "CREDIT":
        _that_takes(pocket, cmd.amount)
        _begin(book, pocket, ctx)
        leg_no = _credit(book, pocket, ctx, there, cmd.amount)
    else:
        _must_cover(pocket, ctx, cmd.amount)
        _begin(book, pocket, ctx)
        leg_no = _debit(book, pocket, ctx, there, cmd.amount)
    return _tell(
        book, pocket, ctx, leg_no, type="GENERIC", direction=cmd.direction, amount=cmd.amount,
        title="Adjustment", description=cmd.description, details={"cause": ADJUSTMENT},
    )  # fmt: skip


def correct_booking(books: Books, cmd: CorrectBooking, ctx: Context) -> Outcome:
    """Book the contrary, in a journal that reverses the other's. Refuses: already-corrected."""
    book = book_of(books, cmd.customers[0])
    wrong = book.seen.get(cmd.activity_id)
    if not isinstance(wrong, HouseBooking) or wrong.cause not in {None, ADJUSTMENT}:
        raise NotFound("The house booked nothing of this id by itself.")
    if wrong.is_corrected:
        raise Refused("already-corrected", "It has been taken back already.")
    pocket = pocket_of(book, wrong.pocket_id)
    there = book.house_account("fees" if wrong.type == "FEE" else "promotions")
    reverses = wrong.journal_no if wrong.journal_kind in _OWN_JOURNALS else None
    _begin(book, pocket, ctx, reverses=reverses)
    if wrong.direction == "DEBIT":
        _that_takes(pocket, wrong.amount)
        direction, leg_no = "CREDIT", _credit(book, pocket, ctx, there, wrong.amount)
    else:
        direction, leg_no = "DEBIT", _debit(book, pocket, ctx, there, wrong.amount)
    book.put(book.seen, cmd.activity_id, msgspec.structs.replace(wrong, is_corrected=True))
    return _tell(
        book, pocket, ctx, leg_no, type="GENERIC", direction=direction, amount=wrong.amount,
        title="Correction", description=cmd.description,
        details={"cause": CORRECTION, "corrects": str(wrong.activity_id)},
    )  # fmt: skip


_CREDIT = {"CASH_BACK": "Cash back", "PROMOTION": "Promotion", "ADJUSTMENT": "Adjustment"}


def _that_takes(pocket: PocketBook, amount: int) -> PocketBook:
    """The pocket, when money may come in; into a closed one only what it owes."""
    if pocket.status in {"OPEN", "FROZEN"} or (0 < amount <= owes(pocket)):
        return pocket
    raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")


def _must_cover(pocket: PocketBook, ctx: Context, amount: int) -> None:
    if pocket.status not in {"OPEN", "FROZEN"}:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    kept = tbills.charge(pocket.fee_accrued)[0] + pocket.liened(ctx.now)
    if liquidation_value(pocket, ctx.t0_bid) - kept < amount:
        raise Refused("insufficient-funds", "The pocket does not cover the adjustment.")


def _begin(book: Book, pocket: PocketBook, ctx: Context, reverses: int | None = None) -> None:
    start_moving(book, pocket, ctx)
    book.begin(
        _JOURNAL, command_id=ctx.command_id, now=ctx.now, business_date=ctx.business_date,
        settles_on=ctx.business_date, reverses=reverses,
    )  # fmt: skip


def _credit(book: Book, pocket: PocketBook, ctx: Context, there: Account, amount: int) -> int:
    leg_no = book.post(there, pocket.bank, amount)
    take_in(book, pocket, ctx, amount)
    return leg_no


def _debit(book: Book, pocket: PocketBook, ctx: Context, there: Account, amount: int) -> int:
    return pay_back(
        book, pocket, ctx, amount, to=there, price_of=ctx.t0_bid, settles_on=book.business_date
    )


def _tell(
    book: Book,
    pocket: PocketBook,
    ctx: Context,
    leg_no: int,
    **told: Any,
) -> Outcome:
    group = ctx.ids.next_group()
    record.activity(
        book, pocket, leg_no=leg_no, activity_id=member_of(group, 1), transaction_id=group,
        settles_at=book.booked_at, **told,
    )  # fmt: skip
    book.close()
    return {"transaction_id": str(group), "activity_id": str(member_of(group, 1))}
