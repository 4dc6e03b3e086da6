"""Cards: creation, switching on and off, freezing by the bank, and closing; physical cards are ordered first."""

from collections.abc import Mapping
from datetime import date
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from billfold.accounts.pockets.rules import pocket_of, require_open
from billfold.events import kinds
from billfold.events.kinds import CardStatusPayload
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Command, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, EventKind, JournalKind, PocketStatus
from billfold.payments.cards.commands import (
    ORDER_JOB,
    STATUS_JOB,
    CardOrderRow,
    CardRow,
    CardStatus,
    CardType,
    CloseCard,
    CloseCardsOfPocket,
    CreateVirtualCard,
    FreezeCard,
    MagstripeStatus,
    OrderCard,
    OrderStatus,
    PlaceCardOrder,
    ProduceCard,
    RecordPin,
    SetCardStatus,
)
from billfold.platform.errors import NotFound, Refused


class BookCardSettlement(Command, frozen=True, kw_only=True):
    """Book a file's interchange, negative if more was returned than received, and its fees, in cents."""

    file_id: UUID
    settles_on: date
    interchange: int
    fees: int


@decides(BookCardSettlement)
def book_settlement(books: Books, cmd: BookCardSettlement, ctx: Context) -> Outcome:
    """Post interchange and fees against the card rail, in the bank's own books."""
    book = book_of(books, cmd.customers[0])
    # Booked on the bank's open business date: only the day end moves on to the next.
    entry_no = book.begin(JournalKind.CARD, ctx, settles_on=cmd.settles_on, business_date=book.business_date)
    rail, interchange = book.internal_account(AccountKind.RAIL_CARD), book.internal_account(AccountKind.INTERCHANGE)
    if cmd.interchange > 0:
        book.post(rail, interchange, cmd.interchange)
    elif cmd.interchange < 0:
        book.post(interchange, rail, -cmd.interchange)
    if cmd.fees:
        book.post(book.internal_account(AccountKind.CARD_FEES), rail, cmd.fees)
    book.close()
    return {"file_id": str(cmd.file_id), "journal_no": entry_no}


_Found = TypeVar("_Found", CardRow, CardOrderRow)
_EVENTS: Final[Mapping[CardStatus, EventKind[CardStatusPayload]]] = {
    CardStatus.ONLINE: kinds.CARD_OPEN,
    CardStatus.OFFLINE: kinds.CARD_LOCKED,
    CardStatus.FROZEN: kinds.CARD_FROZEN,
    CardStatus.CLOSED: kinds.CARD_CLOSED,
}


@decides(CreateVirtualCard)
def create_virtual_card(books: Books, cmd: CreateVirtualCard, ctx: Context) -> Outcome:
    """Create a virtual card, ONLINE at once. Refuses: customer-not-open, pocket-not-open, pocket-frozen."""
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    require_open(book, pocket)
    card = CardRow(
        customer_id=book.customer_id,
        card_id=cmd.card_id,
        pocket_id=cmd.pocket_id,
        card_order_id=None,
        type=CardType.VIRTUAL,
        name=cmd.name,
        status=CardStatus.ONLINE,
        magstripe_status=MagstripeStatus.OFF,
        last_four=cmd.last_four,
        expires_on=cmd.expires_on,
        has_pin=False,
        created_at=ctx.now,
        updated_at=ctx.now,
        partner_id=pocket.partner_id,
    )
    return _add_card(book, card, ctx)


@decides(OrderCard)
def order_card(books: Books, cmd: OrderCard, ctx: Context) -> Outcome:
    """Order a physical card; the order is sent at once. Refuses: customer-not-open, pocket-not-open, pocket-frozen."""
    book = book_of(books, cmd.customers[0])
    require_open(book, pocket_of(book, cmd.pocket_id))
    order = CardOrderRow(
        customer_id=book.customer_id,
        card_order_id=cmd.card_order_id,
        pocket_id=cmd.pocket_id,
        status=OrderStatus.INITIAL,
        name_on_card=cmd.name_on_card,
        shipping_address=cmd.shipping_address,
        card_id=None,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    book.draft.add(order)
    book.put(book.referenced, order.card_order_id, order)
    book.keep_fingerprint(order)
    book.enter("card_order", str(order.card_order_id), order.card_order_id)
    book.schedule(ORDER_JOB, order.card_order_id, ctx.now)
    return {"card_order_id": str(order.card_order_id), "status": order.status}


@decides(PlaceCardOrder)
def place_card_order(books: Books, cmd: PlaceCardOrder, ctx: Context) -> Outcome:
    """Record that the card processor has received the order."""
    book = book_of(books, cmd.customers[0])
    order = _find_referenced(book, cmd.card_order_id, CardOrderRow)
    if order.status == OrderStatus.INITIAL:
        order = _change_order(book, order, ctx, status=OrderStatus.ORDERED)
    return {"card_order_id": str(order.card_order_id), "status": order.status}


@decides(ProduceCard)
def produce_card(books: Books, cmd: ProduceCard, ctx: Context) -> Outcome:
    """Record the card that the processor made for an order.

    Refuses: card-order-not-open, customer-not-open, pocket-not-open, pocket-frozen.
    """
    book = book_of(books, cmd.customers[0])
    order = _find_referenced(book, cmd.card_order_id, CardOrderRow)
    require_order_open(order)
    pocket = pocket_of(book, order.pocket_id)
    require_open(book, pocket)
    _change_order(book, order, ctx, status=OrderStatus.CARD_CREATED, card_id=cmd.card_id)
    card = CardRow(
        customer_id=book.customer_id,
        card_id=cmd.card_id,
        pocket_id=order.pocket_id,
        card_order_id=order.card_order_id,
        type=CardType.PHYSICAL,
        name=order.name_on_card,
        status=CardStatus.NOT_ACTIVATED,
        magstripe_status=MagstripeStatus.OFF,
        last_four=cmd.last_four,
        expires_on=cmd.expires_on,
        has_pin=False,
        created_at=ctx.now,
        updated_at=ctx.now,
        partner_id=pocket.partner_id,
    )
    return {**_add_card(book, card, ctx), "card_order_id": str(order.card_order_id)}


@decides(SetCardStatus)
def set_card_status(books: Books, cmd: SetCardStatus, ctx: Context) -> Outcome:
    """Switch a card on or off, or close it. The stripe is on only if the card is.

    Refuses: already-closed, card-frozen, card-not-activated, customer-not-open, pocket-not-open, pocket-frozen.
    """
    book = book_of(books, cmd.customers[0])
    card = _find_usable(book, cmd.card_id)
    if cmd.status == CardStatus.CLOSED:
        return _change_card(book, card, ctx, status=CardStatus.CLOSED, magstripe_status=MagstripeStatus.OFF)
    if card.status == CardStatus.FROZEN:
        raise Refused("card-frozen", "The bank has frozen the card.")
    if card.status == CardStatus.NOT_ACTIVATED:
        _activate_card(book, card, cmd, ctx)
    if cmd.status == CardStatus.ONLINE:
        require_open(book, pocket_of(book, card.pocket_id))
    magstripe = cmd.magstripe_status if cmd.status == CardStatus.ONLINE else MagstripeStatus.OFF
    return _change_card(book, card, ctx, status=cmd.status, magstripe_status=magstripe)


@decides(RecordPin)
def record_pin(books: Books, cmd: RecordPin, ctx: Context) -> Outcome:
    """Record that the processor has the PIN, even if the card was activated in the meantime.

    Refuses: already-closed.
    """
    book = book_of(books, cmd.customers[0])
    card = _find_usable(book, cmd.card_id)
    return _change_card(book, card, ctx, has_pin=True)


def require_order_open(order: CardOrderRow) -> None:
    """Refuses: card-order-not-open."""
    if order.status not in {OrderStatus.INITIAL, OrderStatus.ORDERED}:
        raise Refused("card-order-not-open", f"The order is {order.status}.")


def require_pin_settable(card: CardRow) -> None:
    """Refuses: already-closed, card-type-mismatch, card-already-activated."""
    require_not_closed(card)
    if card.type != CardType.PHYSICAL:
        raise Refused("card-type-mismatch", "A virtual card has no PIN.")
    if card.status != CardStatus.NOT_ACTIVATED:
        raise Refused("card-already-activated", f"The card is {card.status}.")


def require_not_closed(card: CardRow) -> None:
    """Refuses: already-closed."""
    if card.status == CardStatus.CLOSED:
        raise Refused("already-closed", "The card is closed. It can never be used again.")


@decides(CloseCard)
def close_card(books: Books, cmd: CloseCard, ctx: Context) -> Outcome:
    """Close a card permanently. Refuses: already-closed, card-type-mismatch."""
    book = book_of(books, cmd.customers[0])
    card = _find_usable(book, cmd.card_id)
    if cmd.only not in {None, card.type}:
        raise Refused("card-type-mismatch", f"The card is {card.type}.")
    return _change_card(
        book,
        card,
        ctx,
        status=CardStatus.CLOSED,
        magstripe_status=MagstripeStatus.OFF,
        closure_reason=cmd.reason,
        lost_stolen_on=cmd.lost_stolen_on,
    )


@decides(CloseCardsOfPocket)
def close_cards_of_pocket(books: Books, cmd: CloseCardsOfPocket, ctx: Context) -> Outcome:
    """Close every card of a closed Pocket."""
    book = book_of(books, cmd.customers[0])
    cards = [each for each in book.referenced.values() if isinstance(each, CardRow)]
    for card in cards:
        if card.pocket_id == cmd.pocket_id and card.status != CardStatus.CLOSED:
            _change_card(book, card, ctx, status=CardStatus.CLOSED, magstripe_status=MagstripeStatus.OFF)
    return {"pocket_id": str(cmd.pocket_id)}


@decides(FreezeCard)
def freeze_card(books: Books, cmd: FreezeCard, ctx: Context) -> Outcome:
    """Freeze a card, or unfreeze it: it is then OFFLINE until its holder switches it on.

    Refuses: already-closed, card-not-activated, card-frozen, card-not-frozen.
    """
    book = book_of(books, cmd.customers[0])
    card = _find_usable(book, cmd.card_id)
    if not cmd.is_frozen:
        if card.status != CardStatus.FROZEN:
            raise Refused("card-not-frozen", f"The card is {card.status}.")
        return _change_card(book, card, ctx, status=CardStatus.OFFLINE)
    if card.status == CardStatus.FROZEN:
        raise Refused("card-frozen", "The card is frozen already.")
    if card.status == CardStatus.NOT_ACTIVATED:
        raise Refused("card-not-activated", "A card that is not activated pays nothing. Close it instead.")
    return _change_card(book, card, ctx, status=CardStatus.FROZEN, magstripe_status=MagstripeStatus.OFF)


def _activate_card(book: Book, card: CardRow, cmd: SetCardStatus, ctx: Context) -> None:
    """Activate a card on its first ONLINE, once it has a PIN; its order has then been received."""
    if cmd.status != CardStatus.ONLINE or not card.has_pin:
        raise Refused("card-not-activated", "Set the PIN of the card, then set it ONLINE.")
    if card.card_order_id is not None:
        _change_order(book, _find_referenced(book, card.card_order_id, CardOrderRow), ctx, status=OrderStatus.RECEIVED)


def _find_referenced(book: Book, object_id: UUID, kind: type[_Found]) -> _Found:
    found = book.referenced.get(object_id)
    if not isinstance(found, kind):
        raise NotFound
    return found


def _find_usable(book: Book, card_id: UUID) -> CardRow:
    """Return a card, if neither it nor its Pocket is closed. Refuses: already-closed."""
    card = _find_referenced(book, card_id, CardRow)
    require_not_closed(card)
    if pocket_of(book, card.pocket_id).status == PocketStatus.CLOSED:
        raise Refused("already-closed", "The card is closed with its Pocket.")
    return card


def _add_card(book: Book, card: CardRow, ctx: Context) -> Outcome:
    book.draft.add(card)
    book.enter("card", str(card.card_id), card.card_id)
    return _record_card(book, card, ctx, is_moved=True)


def _change_card(book: Book, card: CardRow, ctx: Context, **columns: object) -> Outcome:
    changed = msgspec.structs.replace(card, updated_at=ctx.now, **columns)
    book.change(CardRow, card.card_id, updated_at=ctx.now, **columns)
    return _record_card(book, changed, ctx, is_moved=changed.status != card.status)


def _record_card(book: Book, card: CardRow, ctx: Context, *, is_moved: bool) -> Outcome:
    book.put(book.referenced, card.card_id, card)
    book.keep_fingerprint(card)
    if is_moved:
        book.schedule(STATUS_JOB, card.card_id, ctx.now)
    if is_moved and card.status in _EVENTS:
        payload = CardStatusPayload(card_id=card.card_id, status=card.status)
        recording.event(book, ctx, _EVENTS[card.status], payload)
    return {"card_id": str(card.card_id), "status": card.status, "magstripe_status": card.magstripe_status}


def _change_order(book: Book, order: CardOrderRow, ctx: Context, **columns: object) -> CardOrderRow:
    changed = msgspec.structs.replace(order, updated_at=ctx.now, **columns)
    book.put(book.referenced, order.card_order_id, changed)
    book.change(CardOrderRow, order.card_order_id, updated_at=ctx.now, **columns)
    book.keep_fingerprint(changed)
    return changed
