"""Refunds: a merchant gives money back, or a purchase is charged back, and the pocket is credited."""

from uuid import UUID

from billfold.accounts.pockets.rules import place_hold, pocket_of
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, PocketStatus, TransactionType
from billfold.payments.cards.authorizations import commands
from billfold.payments.cards.authorizations.disputes.rules import repay_credits
from billfold.payments.cards.authorizations.rules import holds
from billfold.payments.cards.authorizations.rules.clearing import (
    SETTLES_AT,
    begin_record,
    record_payment,
    store_payment,
)
from billfold.payments.cards.commands import CardRow
from billfold.platform.dates import et_instant
from billfold.treasury.rules.sweep import sweep_and_invest
from billfold.treasury.rules.unsettled import unsettled_arrival

NO_POCKET = "NO_POCKET"
"""The pocket is closed: the money has to be held in suspense."""


@decides(commands.RefundCard)
def refund_card(books: Books, cmd: commands.RefundCard, ctx: Context) -> Outcome:
    """Credit a merchant's refund. The status is POSTED, or NO_POCKET. NotFound for a card of another customer."""
    book = book_of(books, cmd.customers[0])
    row = transaction_of(holds.card_of(book, cmd.card_id), cmd, ctx, merchant=cmd.merchant)
    return credit_card(book, row, cmd, ctx, kind=commands.CardPaymentKind.REFUND, title="Card refund")


def transaction_of(
    card: CardRow, cmd: commands.CardRecord, ctx: Context, *, merchant: commands.Merchant
) -> commands.AuthorizationRow:
    """Return the row from which the transaction of a record is made."""
    row = holds.new_authorization(card, cmd, ctx, status=commands.AuthorizationStatus.CLEARED, merchant=merchant)
    return holds.next_place(row, ctx)


def credit_card(
    book: Book,
    row: commands.AuthorizationRow,
    cmd: commands.CardRecord,
    ctx: Context,
    *,
    kind: commands.CardPaymentKind,
    title: str,
    original_id: UUID | None = None,
) -> Outcome:
    """Credit the money of a record, and invest it. The processor pays it on its settlement day."""
    pocket = pocket_of(book, row.pocket_id)
    if pocket.status == PocketStatus.CLOSED:
        return {"record_id": None, "status": NO_POCKET, "amount": cmd.amount}
    begin_record(book, pocket, cmd, ctx)
    posting_no = book.post(book.internal_account(AccountKind.RAIL_CARD), pocket.bank, cmd.amount)
    rest = cmd.amount - repay_credits(book, pocket, cmd, ctx, merchant=row.merchant, original_id=original_id)
    # Its bills could be sold and paid out for the price of one day, while the bank waits for two or more.
    is_held = cmd.settles_on > ctx.settles_on
    unsettled = None if is_held or not rest else unsettled_arrival(rest, ctx, cmd.settles_on)
    sweep_and_invest(book, pocket, ctx, amount=rest, unsettled=unsettled)
    if is_held and rest:
        until = et_instant(cmd.settles_on, SETTLES_AT)
        place_hold(book, pocket, hold_id=ctx.ids.next(), amount=rest, until=until, cause=TransactionType.CARD)
    record_payment(book, pocket, row, cmd, posting_no=posting_no, title=title, direction=Direction.CREDIT)
    book.close()
    return store_payment(book, row, cmd, ctx, kind=kind, original_id=original_id)
