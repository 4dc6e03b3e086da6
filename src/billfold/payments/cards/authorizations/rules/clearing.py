"""Clearing: the processor settles a purchase, and its money leaves the pocket.

It always posts. It may be less than the hold, and the rest is released; more, as with tips and fuel; in
parts; late, after the hold has ended; or without any hold. Any shortfall becomes the pocket's overdraft.
"""

from datetime import time
from typing import Final
from uuid import UUID

import msgspec

from billfold.accounts.pockets.rules import pocket_of
from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, JournalKind
from billfold.payments.cards.authorizations import commands
from billfold.payments.cards.authorizations.rules import holds
from billfold.platform.dates import et_instant
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.overdraft import claw_back

SETTLES_AT: Final = time(8, 30)
"""The time of day at which a settlement is final, in Eastern time."""


@decides(commands.ClearCard)
def clear_card(books: Books, cmd: commands.ClearCard, ctx: Context) -> Outcome:
    """Debit a purchase, from its hold as far as that reaches. NotFound for a card of another customer."""
    book = book_of(books, cmd.customers[0])
    card = holds.card_of(book, cmd.card_id)
    earlier = holds.find_authorization(book, cmd.card_id, cmd.network_reference)
    row = earlier or holds.new_authorization(
        card, cmd, ctx, status=commands.AuthorizationStatus.CLEARED, merchant=cmd.merchant
    )
    was_known = earlier is not None and earlier.status != commands.AuthorizationStatus.DECLINED
    pocket = pocket_of(book, card.pocket_id)
    rest = 0 if cmd.is_final else max(row.remaining - cmd.amount, 0)
    begin_record(book, pocket, cmd, ctx)
    cleared = holds.move_hold(book, pocket, row, ctx, cents=rest)
    cleared = holds.next_place(cleared, ctx)
    take_payment(book, pocket, cleared, cmd, ctx, title="Card payment")
    holds.use_released(book, pocket, ctx)
    book.close()
    if cmd.network_reference is not None:
        status = commands.AuthorizationStatus.PENDING if rest else commands.AuthorizationStatus.CLEARED
        cleared = msgspec.structs.replace(cleared, cleared=row.cleared + cmd.amount, status=status, reason=None)
        holds.store_authorization(book, earlier, cleared, ctx)
    released = row.remaining - rest - cmd.amount
    if released > 0:
        holds.raise_card_event(book, ctx, kinds.CARD_REVERSED, card=card, cents=released)
    if not was_known:
        holds.raise_card_event(book, ctx, kinds.CARD_APPROVED, card=card, cents=cmd.amount)
    authorization_id = None if cmd.network_reference is None else row.authorization_id
    return store_payment(
        book, cleared, cmd, ctx, kind=commands.CardPaymentKind.PURCHASE, authorization_id=authorization_id
    )


# -- shared by all records ------------------------------------------------------------


def begin_record(book: Book, pocket: PocketBook, cmd: commands.CardRecord, ctx: Context) -> None:
    """Open the journal entry of a record."""
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.CARD, ctx, settles_on=max(cmd.settles_on, ctx.business_date))


def take_payment(
    book: Book, pocket: PocketBook, row: commands.AuthorizationRow, cmd: commands.CardRecord, ctx: Context, title: str
) -> None:
    """Take the money of a record from the pocket, and record the transaction."""
    rail = book.internal_account(AccountKind.RAIL_CARD)
    posting_no = claw_back(book, pocket, ctx, cmd.amount, to=rail, terms=ctx.same_day)
    record_payment(book, pocket, row, cmd, posting_no=posting_no, title=title)


def record_payment(
    book: Book,
    pocket: PocketBook,
    row: commands.AuthorizationRow,
    cmd: commands.CardRecord,
    *,
    posting_no: int,
    title: str,
    direction: Direction = Direction.DEBIT,
) -> None:
    """Record the transaction of a record: final when the processor settles it, and not before it is booked."""
    settles_at = max(et_instant(cmd.settles_on, SETTLES_AT), book.booked_at)
    holds.record_card_transaction(
        book,
        pocket,
        row,
        posting_no=posting_no,
        cents=cmd.amount,
        title=title,
        settles_at=settles_at,
        direction=direction,
    )


def store_payment(
    book: Book,
    row: commands.AuthorizationRow,
    cmd: commands.CardRecord,
    ctx: Context,
    *,
    kind: commands.CardPaymentKind,
    authorization_id: UUID | None = None,
    original_id: UUID | None = None,
) -> Outcome:
    """Store the payment of a record, in the last closed entry; return the outcome."""
    payment = commands.CardPaymentRow(
        customer_id=book.customer_id,
        record_id=cmd.record_id,
        kind=kind,
        card_id=row.card_id,
        pocket_id=row.pocket_id,
        authorization_id=authorization_id,
        original_id=original_id,
        amount=cmd.amount,
        interchange=cmd.interchange_cents,
        merchant=row.merchant,
        settles_on=cmd.settles_on,
        entry_no=book.entry_no,
        transaction_id=row.transaction_id,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    book.draft.add(payment)
    book.put(book.referenced, payment.record_id, payment)
    book.keep_fingerprint(payment)
    return {
        "record_id": str(cmd.record_id),
        "authorization_id": None if authorization_id is None else str(authorization_id),
        "status": "POSTED",
        "amount": cmd.amount,
        "transaction_id": str(row.transaction_id),
    }
