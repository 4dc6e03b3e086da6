"""Money of cards that comes back: refunds of merchants, and chargebacks until they are represented."""

from datetime import timedelta

import msgspec

from billfold.accounts.pockets.rules import pocket_of
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, PocketStatus
from billfold.payments.cards.authorizations.commands import CardRecord, ChargeBack, RefundCard, Represent
from billfold.payments.cards.authorizations.rules.clear import (
    begin_record,
    settlement_of,
    store_payment,
)
from billfold.payments.cards.authorizations.rules.holds import (
    card_of,
    new_authorization,
    next_place,
    record_card_transaction,
)
from billfold.payments.cards.authorizations.types import (
    CHARGEBACK_DAYS,
    AuthorizationRow,
    AuthorizationStatus,
    CardPaymentKind,
    CardPaymentRow,
    Merchant,
)
from billfold.payments.cards.types import CardRow
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.overdraft import claw_back
from billfold.treasury.rules.sweep import sweep_and_invest
from billfold.treasury.rules.unsettled import arriving

NO_POCKET = "NO_POCKET"
"""The pocket is closed: the money has to be held in suspense."""


@decides(RefundCard)
def refund_card(books: Books, cmd: RefundCard, ctx: Context) -> Outcome:
    """Credit what a merchant gives back. The status is POSTED, or NO_POCKET. NotFound for a card of others."""
    book = book_of(books, cmd.customers[0])
    card = card_of(book, cmd.card_id)
    row = _place_of(card, cmd, ctx, merchant=cmd.merchant)
    return _credit(book, row, cmd, ctx, kind=CardPaymentKind.REFUND, title="Card refund")


@decides(ChargeBack)
def charge_back(books: Books, cmd: ChargeBack, ctx: Context) -> Outcome:
    """Credit a purchase that its holder disputes, or part of it, until the merchant objects.

    The status is POSTED, or NO_POCKET. NotFound for a purchase that is none of the card.
    Refuses: chargeback-not-possible.
    """
    book = book_of(books, cmd.customers[0])
    purchase = _purchase_of(book, cmd)
    if ctx.today > purchase.settles_on + timedelta(days=CHARGEBACK_DAYS):
        raise Refused("chargeback-not-possible", f"It settled more than {CHARGEBACK_DAYS} days ago.")
    if purchase.disputed + cmd.amount > purchase.amount:
        raise Refused("chargeback-not-possible", "It is more than was paid and not charged back yet.")
    row = _place_of(card_of(book, cmd.card_id), cmd, ctx, merchant=_merchant_of(purchase))
    outcome = _credit(book, row, cmd, ctx, kind=CardPaymentKind.CHARGEBACK, title="Card chargeback", original=purchase)
    if outcome["status"] != NO_POCKET:
        _set_disputed(book, purchase, purchase.disputed + cmd.amount, ctx)
    return outcome


@decides(Represent)
def represent(books: Books, cmd: Represent, ctx: Context) -> Outcome:
    """Take back what was charged back: the merchant has proved the purchase. What the pocket cannot pay it owes.

    NotFound for a purchase that is none of the card. Refuses: representment-not-possible.
    """
    book = book_of(books, cmd.customers[0])
    purchase = _purchase_of(book, cmd)
    if cmd.amount > purchase.disputed:
        raise Refused("representment-not-possible", "It is more than is charged back.")
    row = _place_of(card_of(book, cmd.card_id), cmd, ctx, merchant=_merchant_of(purchase))
    pocket = pocket_of(book, purchase.pocket_id)
    begin_record(book, pocket, cmd, ctx)
    posting_no = claw_back(
        book,
        pocket,
        ctx,
        cmd.amount,
        to=book.internal_account(AccountKind.RAIL_CARD),
        terms=ctx.same_day,
    )
    record_card_transaction(
        book,
        pocket,
        row,
        posting_no=posting_no,
        cents=cmd.amount,
        title="Card chargeback reversed",
        settles_at=settlement_of(book, cmd.settles_on),
    )
    book.close()
    _set_disputed(book, purchase, purchase.disputed - cmd.amount, ctx)
    return store_payment(book, row, cmd, ctx, kind=CardPaymentKind.REPRESENTMENT, original_id=purchase.record_id)


def _credit(
    book: Book,
    row: AuthorizationRow,
    cmd: CardRecord,
    ctx: Context,
    *,
    kind: CardPaymentKind,
    title: str,
    original: CardPaymentRow | None = None,
) -> Outcome:
    """Credit what a record gives back, and invest it. The processor pays it on the day it settles."""
    pocket = pocket_of(book, row.pocket_id)
    if pocket.status == PocketStatus.CLOSED:
        return {"record_id": None, "status": NO_POCKET, "amount": cmd.amount}
    begin_record(book, pocket, cmd, ctx)
    posting_no = book.post(book.internal_account(AccountKind.RAIL_CARD), pocket.bank, cmd.amount)
    sweep_and_invest(book, pocket, ctx, amount=cmd.amount, unsettled=arriving(cmd.amount, ctx, cmd.settles_on))
    record_card_transaction(
        book,
        pocket,
        row,
        posting_no=posting_no,
        cents=cmd.amount,
        title=title,
        settles_at=settlement_of(book, cmd.settles_on),
        direction=Direction.CREDIT,
    )
    book.close()
    original_id = None if original is None else original.record_id
    return store_payment(book, row, cmd, ctx, kind=kind, original_id=original_id)


def _purchase_of(book: Book, cmd: ChargeBack | Represent) -> CardPaymentRow:
    found = book.referenced.get(cmd.original_id)
    if not isinstance(found, CardPaymentRow) or (found.kind, found.card_id) != (CardPaymentKind.PURCHASE, cmd.card_id):
        raise NotFound("There is no such purchase.")
    return found


def _place_of(card: CardRow, cmd: CardRecord, ctx: Context, *, merchant: Merchant) -> AuthorizationRow:
    """Return what the transaction of a record is made of."""
    row = new_authorization(card, cmd, ctx, status=AuthorizationStatus.CLEARED, merchant=merchant)
    return next_place(row, ctx)


def _merchant_of(purchase: CardPaymentRow) -> Merchant:
    return msgspec.json.decode(purchase.merchant, type=Merchant)


def _set_disputed(book: Book, purchase: CardPaymentRow, cents: int, ctx: Context) -> None:
    changed = msgspec.structs.replace(purchase, disputed=cents, updated_at=ctx.now)
    book.change(CardPaymentRow, purchase.record_id, disputed=cents, updated_at=ctx.now)
    book.put(book.referenced, purchase.record_id, changed)
    book.keep_fingerprint(changed)
