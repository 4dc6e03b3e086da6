"""Orders: placed by rounds, quoted, and moved between their states. The desk is paused and resumed."""

from datetime import timedelta
from uuid import UUID

import msgspec

from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.platform.errors import NotFound, Refused
from billfold.trading.commands import ChangeOrder, PauseDesk, PlaceOrders, RecordQuote, order_id_of
from billfold.trading.types import (
    ALLOWED,
    LIVE,
    ORDER_EVENTS,
    DealerOrder,
    OrderPayload,
    OrderStatus,
    Quote,
    ReferencedOrder,
    TradingDesk,
)


@decides(PlaceOrders)
def place_orders(books: Books, cmd: PlaceOrders, ctx: Context) -> Outcome:
    """Place orders as NEW. Refuses: desk-paused, and order-state if another round was placed since it was decided."""
    book = book_of(books, cmd.customers[0])
    desk = _desk_of(book, ctx)
    if desk.paused:
        raise Refused("desk-paused", f"The trading desk is paused: {desk.reason}")
    if cmd.round_no != desk.round_no + 1:
        raise Refused("order-state", f"Round {desk.round_no} has been placed since. Decide again.")
    placed = [
        DealerOrder(
            customer_id=book.customer_id,
            order_id=order_id_of(cmd.round_no, place),
            round_no=cmd.round_no,
            settles_on=cmd.settles_on,
            business_date=book.business_date,
            decided_at=ctx.now,
            updated_at=ctx.now,
            **each._asdict(),
        )
        for place, each in enumerate(cmd.decisions)
    ]
    for order in placed:
        book.draft.add(order)
        _announce(book, ctx, ReferencedOrder(order))
    _save_desk(book, ctx, msgspec.structs.replace(desk, round_no=cmd.round_no))
    return {"round_no": cmd.round_no, "orders": [str(each.order_id) for each in placed]}


@decides(PauseDesk)
def pause_desk(books: Books, cmd: PauseDesk, ctx: Context) -> Outcome:
    """Pause or resume the desk. Refuses: desk-paused if that is its state already."""
    book = book_of(books, cmd.customers[0])
    desk = _desk_of(book, ctx)
    if desk.paused == cmd.paused:
        raise Refused("desk-paused", f"The trading desk is {'paused' if desk.paused else 'running'} already.")
    _save_desk(book, ctx, msgspec.structs.replace(desk, paused=cmd.paused, reason=cmd.reason))
    return {"paused": cmd.paused}


@decides(ChangeOrder)
def change_order(books: Books, cmd: ChangeOrder, ctx: Context) -> Outcome:
    """Change the state of an order. Refuses: order-state if the change is not allowed, or only executions make it."""
    book = book_of(books, cmd.customers[0])
    order = find_order(book, cmd.order_id)
    if cmd.status in {OrderStatus.PARTIALLY_FILLED, OrderStatus.FILLED}:
        raise Refused("order-state", "Enter the execution: it changes the order.")
    row = order.row
    status: OrderStatus = cmd.status
    if status == OrderStatus.WORKING and row.filled_units:
        if row.status != OrderStatus.UNKNOWN:
            raise Refused("order-state", "The order is filled in part.")
        status = OrderStatus.PARTIALLY_FILLED
    if status == OrderStatus.CANCELLED and row.dealer and not cmd.by_dealer and row.status in LIVE:
        book.change(DealerOrder, row.order_id, cancel_asked=True, updated_at=ctx.now)
        asked = msgspec.structs.replace(row, cancel_asked=True, updated_at=ctx.now)
        book.keep_fingerprint(asked)
        book.put(book.referenced, row.order_id, order._replace(row=asked))
        return {"order_id": str(cmd.order_id), "status": row.status}
    if cmd.dealer:
        require_dealer(ctx, cmd.dealer)
        taken = {"dealer": cmd.dealer, "taken_because": cmd.reason}
        book.change(DealerOrder, row.order_id, **taken)
        order = order._replace(row=msgspec.structs.replace(row, **taken))
    move(book, ctx, order, status, reason=cmd.reason)
    return {"order_id": str(cmd.order_id), "status": status}


@decides(RecordQuote)
def record_quote(books: Books, cmd: RecordQuote, ctx: Context) -> Outcome:
    """Keep a quote. Refuses: order-state if the order has ended, execution-refused for an unknown dealer."""
    book = book_of(books, cmd.customers[0])
    order = find_order(book, cmd.order_id)
    if order.row.status not in LIVE:
        raise Refused("order-state", f"The order is {order.row.status}.")
    require_dealer(ctx, cmd.dealer)
    expires_at = ctx.now + timedelta(seconds=ctx.terms.desk_quote_seconds)
    quote = Quote(
        customer_id=book.customer_id,
        quote_id=ctx.ids.next(),
        order_id=cmd.order_id,
        dealer=cmd.dealer,
        price_micros=cmd.price_micros,
        units=cmd.units,
        quoted_at=ctx.now,
        expires_at=min(expires_at, cmd.valid_until or expires_at),
        reference=cmd.reference,
    )
    book.draft.add(quote)
    book.keep_fingerprint(quote)
    book.put(book.referenced, cmd.order_id, order._replace(quotes=(*order.quotes, quote)))
    return {"quote_id": str(quote.quote_id)}


def require_dealer(ctx: Context, dealer: str) -> None:
    """Refuse a dealer that the settings do not name: `execution-refused`."""
    if dealer not in ctx.terms.dealers:
        raise Refused("execution-refused", f"No dealer is named {dealer}. Dealers: {', '.join(ctx.terms.dealers)}.")


def find_order(book: Book, order_id: UUID) -> ReferencedOrder:
    """Return an order that the command references. Raises NotFound."""
    found = book.referenced.get(order_id)
    if not isinstance(found, ReferencedOrder):
        raise NotFound(f"There is no order {order_id}.")
    return found


def move(
    book: Book,
    ctx: Context,
    order: ReferencedOrder,
    status: OrderStatus,
    *,
    filled_units: int | None = None,
    reason: str | None = None,
) -> None:
    """Change the state of an order and the units that are filled. Refuses: order-state if it is not allowed."""
    row = order.row
    filled = row.filled_units if filled_units is None else filled_units
    if status not in ALLOWED[row.status] and not (status == row.status and filled != row.filled_units):
        raise Refused("order-state", f"The order is {row.status}; it cannot become {status}.")
    columns = {"status": status, "status_reason": reason, "filled_units": filled, "updated_at": ctx.now}
    book.change(DealerOrder, row.order_id, **columns)
    _announce(book, ctx, order._replace(row=msgspec.structs.replace(row, **columns)))


def _announce(book: Book, ctx: Context, order: ReferencedOrder) -> None:
    row = order.row
    book.keep_fingerprint(row)
    book.put(book.referenced, row.order_id, order)
    shown = OrderPayload(
        order_id=row.order_id,
        cusip=row.cusip,
        side=row.side,
        units=row.units,
        filled_units=row.filled_units,
        reason=row.status_reason,
    )
    recording.event(book, ctx, ORDER_EVENTS[row.status], payload=shown)


def _desk_of(book: Book, ctx: Context) -> TradingDesk:
    found = book.referenced.get(book.customer_id)
    return found if isinstance(found, TradingDesk) else TradingDesk(customer_id=book.customer_id, changed_at=ctx.now)


def _save_desk(book: Book, ctx: Context, desk: TradingDesk) -> None:
    """Write the desk, which has no row before its first command."""
    desk = msgspec.structs.replace(desk, changed_at=ctx.now)
    if isinstance(book.referenced.get(book.customer_id), TradingDesk):
        columns = msgspec.structs.asdict(desk)
        del columns["customer_id"]
        book.change(TradingDesk, book.customer_id, **columns)
    else:
        book.draft.add(desk)
    book.keep_fingerprint(desk)
    book.put(book.referenced, book.customer_id, desk)
