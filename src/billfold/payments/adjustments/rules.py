"""Goodwill credits, adjustments and reversals that an operator posts.

They are paid from the bank's account `promotions`; a refunded fee is paid from `fees`. A reversal
is never refused: money that the pocket has already spent becomes its overdraft.
"""

from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.pockets.rules import pocket_of, require_not_closed
from billfold.accounts.transactions.settlement import BankBooking
from billfold.bills.rules import fees
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import AuditedAction, Books, Command, Outcome, Reference, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, JournalKind, TransactionType
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import member_of
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.liquidate import liquidation_value
from billfold.treasury.rules.overdraft import claw_back, overdraft_of
from billfold.treasury.rules.sweep import sweep_and_invest


class PostGoodwillCredit(Command, frozen=True, kw_only=True):
    """Credit a pocket with `amount` cents: cash back, a promotion or an adjustment."""

    former_names = ("GiveCredit",)
    audit = AuditedAction("pocket", "credited", fields=("amount", "credit_type", "description"))
    pocket_id: UUID
    amount: int
    credit_type: str  # "CASH_BACK", "PROMOTION" or "ADJUSTMENT"
    description: str


class AdjustPocket(Command, frozen=True, kw_only=True):
    """Adjust a pocket by `amount` cents. The pocket must cover a DEBIT."""

    audit = AuditedAction("pocket", "adjusted", fields=("direction", "amount", "description"))
    pocket_id: UUID
    direction: Direction
    amount: int
    description: str


class ReverseTransaction(Command, frozen=True, kw_only=True):
    """Reverse one credit, adjustment or fee in full. `references` holds the transaction."""

    former_names = ("CorrectBooking",)
    reference_kinds = (Reference.TRANSACTION,)
    audit = AuditedAction("activity", "corrected", fields=("description",))
    activity_id: UUID
    description: str


ADJUSTMENT, CORRECTION = "ADJUSTMENT", "CORRECTION"
_JOURNAL = JournalKind.ADJUSTMENT
_OWN_JOURNALS = frozenset({JournalKind.FEE, _JOURNAL})
"""Kinds of journal entries that hold only one reversible transaction."""


@decides(PostGoodwillCredit)
def post_goodwill_credit(books: Books, cmd: PostGoodwillCredit, ctx: Context) -> Outcome:
    """Post a credit from `promotions`. Refuses: pocket-not-open."""
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    _require_receivable(pocket, cmd.amount)
    return post_credit(book, pocket, ctx, amount=cmd.amount, credit_type=cmd.credit_type, description=cmd.description)


def post_credit(
    book: Book,
    pocket: PocketBook,
    ctx: Context,
    *,
    amount: int,
    credit_type: str,
    description: str,
    period: str | None = None,
    card_id: UUID | None = None,
) -> Outcome:
    """Post a credit from `promotions`; cash back has a period, as YYYY-MM, and a card."""
    return _post_against_bank(
        book,
        pocket,
        ctx,
        direction=Direction.CREDIT,
        amount=amount,
        type=TransactionType.CREDIT,
        title=_CREDIT[credit_type],
        description=description,
        details={"credit_type": credit_type, "period": period, "card_id": card_id and str(card_id)},
    )


@decides(AdjustPocket)
def adjust_pocket(books: Books, cmd: AdjustPocket, ctx: Context) -> Outcome:
    """Post an adjustment against `promotions`. Refuses: pocket-not-open, insufficient-funds."""
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    if cmd.direction == Direction.CREDIT:
        _require_receivable(pocket, cmd.amount)
    else:
        _require_covered(pocket, ctx, cmd.amount)
    return _post_against_bank(
        book,
        pocket,
        ctx,
        direction=cmd.direction,
        amount=cmd.amount,
        type=TransactionType.GENERIC,
        title="Adjustment",
        description=cmd.description,
        details={"cause": ADJUSTMENT},
    )


@decides(ReverseTransaction)
def reverse_transaction(books: Books, cmd: ReverseTransaction, ctx: Context) -> Outcome:
    """Post the opposite of a transaction in a journal entry that reverses it. Refuses: already-corrected."""
    book = book_of(books, cmd.customers[0])
    wrong = book.referenced.get(cmd.activity_id)
    if not isinstance(wrong, BankBooking) or wrong.cause not in {None, ADJUSTMENT}:
        raise NotFound("This transaction is not a credit, an adjustment or a fee of the bank.")
    if wrong.is_corrected:
        raise Refused("already-corrected", "The transaction is already reversed.")
    pocket = pocket_of(book, wrong.pocket_id)
    if wrong.direction == Direction.DEBIT:
        _require_receivable(pocket, wrong.amount)
    book.put(book.referenced, cmd.activity_id, msgspec.structs.replace(wrong, is_corrected=True))
    return _post_against_bank(
        book,
        pocket,
        ctx,
        direction=Direction.CREDIT if wrong.direction == Direction.DEBIT else Direction.DEBIT,
        against=AccountKind.FEES if wrong.type == TransactionType.FEE else AccountKind.PROMOTIONS,
        reverses=wrong.entry_no if wrong.journal_kind in _OWN_JOURNALS else None,
        amount=wrong.amount,
        type=TransactionType.GENERIC,
        title="Correction",
        description=cmd.description,
        details={"cause": CORRECTION, "corrects": str(wrong.activity_id)},
    )


_CREDIT = {"CASH_BACK": "Cash back", "PROMOTION": "Promotion", "ADJUSTMENT": "Adjustment"}


def _require_receivable(pocket: PocketBook, amount: int) -> None:
    """Raise Refused unless the pocket may be credited; a closed one may be, up to its overdraft."""
    if not 0 < amount <= overdraft_of(pocket):
        require_not_closed(pocket)


def _require_covered(pocket: PocketBook, ctx: Context, amount: int) -> None:
    require_not_closed(pocket)
    kept = fees.split_accrued_fee(pocket.fee_accrued)[0] + pocket.held_cents(ctx.now, ctx.calendars)
    if liquidation_value(pocket, ctx.same_day) - kept < amount:
        raise Refused("insufficient-funds", "The pocket does not cover the adjustment.")


def _post_against_bank(
    book: Book,
    pocket: PocketBook,
    ctx: Context,
    *,
    direction: Direction,
    amount: int,
    against: AccountKind = AccountKind.PROMOTIONS,
    reverses: int | None = None,
    **transaction: Any,
) -> Outcome:
    """Post money from or to an account of the bank, in its own journal entry, with its transaction."""
    roll_business_day(book, pocket, ctx)
    book.begin(_JOURNAL, ctx, settles_on=ctx.business_date, reverses=reverses)
    account = book.internal_account(against)
    if direction == Direction.CREDIT:
        posting_no = book.post(account, pocket.bank, amount)
        sweep_and_invest(book, pocket, ctx, amount=amount)
    else:
        posting_no = claw_back(book, pocket, ctx, amount=amount, to=account, terms=ctx.same_day)
    group = ctx.ids.next_group()
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        direction=direction,
        amount=amount,
        settles_at=book.booked_at,
        **transaction,
    )
    book.close()
    return {"transaction_id": str(group), "activity_id": str(member_of(group, 1))}
