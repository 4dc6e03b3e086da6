"""Executions: fills, corrections and busts are posted to the bank's inventory and counted on their orders."""

from datetime import date, timedelta
from typing import Final
from uuid import UUID

import msgspec

from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.recording import post_signed
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import cents_for, format_usd
from billfold.trading.commands import AmendExecution, NewExecution, RecordExecutions
from billfold.trading.rules.orders import find_order, move, require_dealer
from billfold.trading.rules.policy import Verdict, rank_quotes, slippage_bps
from billfold.trading.rules.settlements import instruct, withdraw
from billfold.trading.types import (
    EXECUTION_EVENTS,
    DealerOrder,
    Execution,
    ExecutionKind,
    ExecutionPayload,
    OrderStatus,
    ReferencedExecution,
    ReferencedOrder,
    sign_of,
)

REFUSED: Final = "execution-refused"
SETTLES_WITHIN = timedelta(days=10)
"""Longest time between an execution and its settlement."""


@decides(RecordExecutions)
def record_executions(books: Books, cmd: RecordExecutions, ctx: Context) -> Outcome:
    """Book fills; refused ones are in the outcome with the reason. Refuses: execution-refused if none is booked."""
    book = book_of(books, cmd.customers[0])
    booked: list[str] = []
    refused: dict[str, str] = {}
    for each in cmd.executions:
        try:
            order = find_order(book, each.order_id)
            check_fill(book, each, order, ctx)
        except (NotFound, Refused) as refusal:
            refused[str(each.execution_id)] = refusal.detail
        else:
            _book_fill(book, ctx, each, order)
            booked.append(str(each.execution_id))
    if not booked:
        raise Refused(REFUSED, next(iter(refused.values()), "There is nothing to book."), refused=refused)
    return {"executions": booked, "refused": refused}


def check_fill(book: Book, new: NewExecution, order: ReferencedOrder, ctx: Context) -> None:
    """Refuse a fill that does not fit its order, or whose values contradict each other: `execution-refused`."""
    row = order.row
    require_dealer(ctx, new.dealer)
    if isinstance(book.referenced.get(new.execution_id), ReferencedExecution):
        raise Refused(REFUSED, f"{new.dealer} {new.reference} is booked already.")
    if (new.cusip, new.side) != (row.cusip, row.side):
        raise Refused(REFUSED, f"It says {new.side} {new.cusip}, the order says {row.side} {row.cusip}.")
    if row.status == OrderStatus.NEW:
        raise Refused(REFUSED, "The order was never sent.")
    if new.units > row.open_units:
        raise Refused(REFUSED, f"It fills {new.units} units, but only {row.open_units} of the order are open.")
    if new.executed_at > ctx.now or new.executed_at < row.decided_at.replace(second=0, microsecond=0):
        raise Refused(REFUSED, "Its time is before the order or in the future.")
    _check_values(ctx, new.cusip, (new.units, new.price_micros, new.money), et_date(new.executed_at), new.settles_on)


def _check_values(ctx: Context, cusip: str, values: tuple[int, int, int], traded_on: date, settles_on: date) -> None:
    units, price_micros, money = values
    if min(values) <= 0:
        raise Refused(REFUSED, "Face, price and money must be positive.")
    if money != cents_for(units, price_micros):
        right = format_usd(cents_for(units, price_micros))
        raise Refused(REFUSED, f"The money is {format_usd(money)}; units times price are {right}.")
    last = min(traded_on + SETTLES_WITHIN, ctx.bill(cusip).maturity)
    if not traded_on <= settles_on <= last or not ctx.calendars.is_settlement_day(settles_on):
        raise Refused(REFUSED, f"{cusip} traded on {traded_on} cannot settle on {settles_on}.")


def _book_fill(book: Book, ctx: Context, new: NewExecution, order: ReferencedOrder) -> None:
    row = Execution(
        customer_id=book.customer_id,
        execution_id=new.execution_id,
        kind=ExecutionKind.FILL,
        business_date=book.business_date,
        recorded_at=ctx.now,
        entry_no=book.begin(JournalKind.EXECUTION, ctx, settles_on=new.settles_on, business_date=book.business_date),
        flags=",".join(flags_of(new, order, ctx)) or None,
        **msgspec.structs.asdict(new),
    )
    _post(book, row, 1)
    book.close()
    _record(book, ctx, row)
    instruct(book, ctx, row)
    count_fill(book, ctx, order, row.units)


@decides(AmendExecution)
def amend_execution(books: Books, cmd: AmendExecution, ctx: Context) -> Outcome:
    """Replace an execution by its correction or bust. Refuses: execution-refused if it was replaced before."""
    book = book_of(books, cmd.customers[0])
    order, before = find_order(book, cmd.order_id), _find_execution(book, cmd.execution_id)
    new_id = cmd.references[-1]
    if before.is_replaced or before.row.kind == ExecutionKind.BUST:
        raise Refused(REFUSED, "It has been corrected or busted. Name the newest row.")
    if new_id in book.referenced:
        raise Refused(REFUSED, f"{before.row.dealer} {cmd.reference} is booked already.")
    old = before.row
    if not cmd.is_bust:
        values = cmd.units, cmd.price_micros, cmd.money
        _check_values(ctx, old.cusip, values, et_date(old.executed_at), cmd.settles_on)
        if cmd.units > order.row.open_units + old.units:
            raise Refused(REFUSED, f"Only {order.row.open_units + old.units} units of the order can be filled.")
    entry_no = book.begin(JournalKind.EXECUTION, ctx, settles_on=cmd.settles_on, business_date=book.business_date)
    fields = {"units": cmd.units, "price_micros": cmd.price_micros, "money": cmd.money, "settles_on": cmd.settles_on}
    row = msgspec.structs.replace(
        old,
        execution_id=new_id,
        kind=ExecutionKind.BUST if cmd.is_bust else ExecutionKind.CORRECTION,
        corrects=old.execution_id,
        reference=cmd.reference,
        business_date=book.business_date,
        recorded_at=ctx.now,
        entry_no=entry_no,
        flags=None,
        **({} if cmd.is_bust else fields),
    )
    _post(book, old, -1)
    if not cmd.is_bust:
        row = msgspec.structs.replace(row, flags=",".join(flags_of(row, order, ctx)) or None)
        _post(book, row, 1)
    book.close()
    book.put(book.referenced, old.execution_id, before._replace(is_replaced=True))
    _record(book, ctx, row)
    withdraw(book, ctx, old.execution_id)
    if not cmd.is_bust:
        instruct(book, ctx, row)
    count_fill(book, ctx, order, (0 if cmd.is_bust else row.units) - old.units)
    return {"execution_id": str(new_id), "order_id": str(cmd.order_id)}


def _find_execution(book: Book, execution_id: UUID) -> ReferencedExecution:
    found = book.referenced.get(execution_id)
    if not isinstance(found, ReferencedExecution):
        raise NotFound(f"There is no execution {execution_id}.")
    return found


def count_fill(book: Book, ctx: Context, order: ReferencedOrder, units: int) -> None:
    """Count units on an order, negative ones after a bust. One that has ended otherwise stays in its state."""
    if units == 0:
        return
    filled = order.row.filled_units + units
    move(book, ctx, order, _status_after(order.row, filled, book.business_date), filled_units=filled)


def _status_after(order: DealerOrder, filled: int, today: date) -> OrderStatus:
    if order.status in {OrderStatus.CANCELLED, OrderStatus.REJECTED, OrderStatus.EXPIRED}:
        return order.status
    if filled == order.units:
        return OrderStatus.FILLED
    if order.business_date < today:
        return OrderStatus.EXPIRED
    return OrderStatus.PARTIALLY_FILLED if filled else OrderStatus.WORKING


def flags_of(new: NewExecution | Execution, order: ReferencedOrder, ctx: Context) -> list[str]:
    """Return the warnings about a fill: PRICE beyond the guard, BEST_QUOTE missed, FEW_QUOTES, AFTER_END of order."""
    row, at = order.row, ctx.at(new.executed_at)
    worse = slippage_bps(new.price_micros, at.mark(new.cusip) or row.mark_micros, new.side)
    ranked = rank_quotes(order.quotes, row.side, new.units, limit_micros=row.limit_micros, at=new.executed_at)
    usable = [quote for quote, verdict in ranked if verdict in {Verdict.BEST, Verdict.WORSE}]
    has_better = bool(usable) and sign_of(new.side) * (new.price_micros - usable[0].price_micros) > 0
    warnings = {
        "PRICE": worse > ctx.terms.desk_max_slippage_bps,
        "BEST_QUOTE": has_better,
        "FEW_QUOTES": len({quote.dealer for quote in order.quotes}) < ctx.terms.desk_quotes_wanted,
        "AFTER_END": row.status in {OrderStatus.CANCELLED, OrderStatus.REJECTED, OrderStatus.EXPIRED},
    }
    return [name for name, raised in warnings.items() if raised]


def _record(book: Book, ctx: Context, row: Execution) -> None:
    book.draft.add(row)
    book.keep_fingerprint(row)
    book.put(book.referenced, row.execution_id, ReferencedExecution(row, is_replaced=False))
    shown = msgspec.convert(row, ExecutionPayload, from_attributes=True)
    recording.event(book, ctx, EXECUTION_EVENTS[row.kind], payload=shown)


def _post(book: Book, row: Execution, sign: int) -> None:
    """Post an execution, or take it back: bills from the dealer to the inventory, money the other way."""
    dealer, sign = AccountKind.of_dealer(row.dealer), sign * sign_of(row.side)
    inventory = AccountKind.INVENTORY
    bills = book.internal_account(dealer, row.cusip), book.internal_account(inventory, row.cusip)
    post_signed(book, *bills, amount=sign * row.units)
    post_signed(book, book.internal_account(inventory), book.internal_account(dealer), amount=sign * row.money)
