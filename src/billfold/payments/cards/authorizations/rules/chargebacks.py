"""Chargebacks: a purchase that its holder disputes is credited until the merchant represents it."""

from datetime import timedelta

import msgspec

from billfold.accounts.pockets.rules import pocket_of
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.payments.cards.authorizations.commands import (
    CHARGEBACK_DAYS,
    CardPaymentKind,
    CardPaymentRow,
    ChargeBack,
    Merchant,
    Represent,
)
from billfold.payments.cards.authorizations.disputes.rules import lose_represented
from billfold.payments.cards.authorizations.rules import holds
from billfold.payments.cards.authorizations.rules.clearing import begin_record, store_payment, take_payment
from billfold.payments.cards.authorizations.rules.refunds import NO_POCKET, credit_card, transaction_of
from billfold.platform.errors import NotFound, Refused


@decides(ChargeBack)
def charge_back(books: Books, cmd: ChargeBack, ctx: Context) -> Outcome:
    """Credit a purchase that the cardholder disputes, or part of it, until the merchant objects.

    The status is POSTED, or NO_POCKET. NotFound for a purchase of another card.
    Refuses: chargeback-not-possible.
    """
    book = book_of(books, cmd.customers[0])
    purchase = _purchase_of(book, cmd)
    if ctx.today > purchase.settles_on + timedelta(days=CHARGEBACK_DAYS):
        raise Refused("chargeback-not-possible", f"It settled more than {CHARGEBACK_DAYS} days ago.")
    if purchase.disputed + cmd.amount > purchase.amount:
        raise Refused("chargeback-not-possible", "It is more than was paid and not charged back yet.")
    row = transaction_of(holds.card_of(book, cmd.card_id), cmd, ctx, merchant=_merchant_of(purchase))
    kind, purchase_id = CardPaymentKind.CHARGEBACK, purchase.record_id
    outcome = credit_card(book, row, cmd, ctx, kind=kind, title="Card chargeback", original_id=purchase_id)
    if outcome["status"] != NO_POCKET:
        _set_disputed(book, purchase, purchase.disputed + cmd.amount, ctx)
    return outcome


@decides(Represent)
def represent(books: Books, cmd: Represent, ctx: Context) -> Outcome:
    """Reverse a chargeback: the merchant has proved the purchase. Any shortfall becomes the pocket's overdraft.

    NotFound for a purchase of another card. Refuses: representment-not-possible.
    """
    book = book_of(books, cmd.customers[0])
    purchase = _purchase_of(book, cmd)
    if cmd.amount > purchase.disputed:
        raise Refused("representment-not-possible", "It is more than is charged back.")
    row = transaction_of(holds.card_of(book, cmd.card_id), cmd, ctx, merchant=_merchant_of(purchase))
    pocket = pocket_of(book, purchase.pocket_id)
    begin_record(book, pocket, cmd, ctx)
    take_payment(book, pocket, row, cmd, ctx, title="Card chargeback reversed")
    book.close()
    _set_disputed(book, purchase, purchase.disputed - cmd.amount, ctx)
    kind = CardPaymentKind.REPRESENTMENT
    outcome = store_payment(book, row, cmd, ctx, kind=kind, original_id=purchase.record_id)
    lose_represented(book, pocket, cmd, ctx)
    return outcome


def _purchase_of(book: Book, cmd: ChargeBack | Represent) -> CardPaymentRow:
    found = book.referenced.get(cmd.original_id)
    if not isinstance(found, CardPaymentRow) or (found.kind, found.card_id) != (CardPaymentKind.PURCHASE, cmd.card_id):
        raise NotFound("There is no such purchase.")
    return found


def _merchant_of(purchase: CardPaymentRow) -> Merchant:
    return msgspec.json.decode(purchase.merchant, type=Merchant)


def _set_disputed(book: Book, purchase: CardPaymentRow, cents: int, ctx: Context) -> None:
    changed = msgspec.structs.replace(purchase, disputed=cents, updated_at=ctx.now)
    book.change(CardPaymentRow, purchase.record_id, disputed=cents, updated_at=ctx.now)
    book.put(book.referenced, purchase.record_id, changed)
    book.keep_fingerprint(changed)
