"""Orders, executions, quotes and positions of the trading desk: enums and rows.

Units are bills of $100 face, prices micro-dollars per $100, money cents.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.types import EventKind
from billfold.platform.database.rows import Row


class Side(StrEnum):
    """The bank's side."""

    BUY = "BUY"
    SELL = "SELL"


def sign_of(side: str) -> int:
    """Return 1 if the bank receives bills, -1 if it delivers them. A row has the side as text."""
    return 1 if side == Side.BUY else -1


class OrderStatus(StrEnum):
    """The state of an order. UNKNOWN: the dealer's answer is in doubt."""

    NEW = "NEW"
    SENT = "SENT"
    WORKING = "WORKING"
    PARTIALLY_FILLED = "PARTIALLY_FILLED"
    FILLED = "FILLED"
    CANCELLED = "CANCELLED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    UNKNOWN = "UNKNOWN"


_S = OrderStatus
ENDED: Final = frozenset({_S.FILLED, _S.CANCELLED, _S.REJECTED, _S.EXPIRED})
LIVE: Final = frozenset(OrderStatus) - ENDED
_BY_A_DEALER = frozenset({_S.WORKING, _S.PARTIALLY_FILLED, _S.FILLED, *ENDED, _S.UNKNOWN})
ALLOWED: Final = {
    _S.NEW: frozenset({_S.SENT, _S.CANCELLED, _S.REJECTED, _S.EXPIRED}),
    _S.SENT: _BY_A_DEALER,
    _S.WORKING: _BY_A_DEALER - {_S.WORKING},
    _S.PARTIALLY_FILLED: _BY_A_DEALER - {_S.REJECTED},
    _S.UNKNOWN: _BY_A_DEALER - {_S.UNKNOWN},
    **dict.fromkeys(ENDED, frozenset[OrderStatus]()),
    # After a bust or a correction something of it is open again.
    _S.FILLED: frozenset({_S.WORKING, _S.PARTIALLY_FILLED, _S.EXPIRED}),
}
"""The changes of state that are allowed."""


class OrderCause(StrEnum):
    """The reason for an order: the round of the interval, the hour by which all is covered, or too large a position."""

    INTERVAL = "INTERVAL"
    COVER_BY = "COVER_BY"
    HOUSE_LIMIT = "HOUSE_LIMIT"


class Decision(NamedTuple):
    """An order to place."""

    cusip: str
    side: Side
    units: int
    limit_micros: int
    mark_micros: int
    cause: OrderCause


class ExecutionKind(StrEnum):
    """A correction and a bust replace the execution at which they point."""

    FILL = "FILL"
    CORRECTION = "CORRECTION"
    BUST = "BUST"


class TradingDesk(Row, frozen=True, kw_only=True):
    """The state of the desk: the number of the last round with orders, and whether it is paused."""

    table = "trading_desk"
    fingerprinted = True

    customer_id: UUID
    round_no: int = 0
    paused: bool = False
    reason: str | None = None
    changed_at: datetime


class DealerOrder(Row, frozen=True, kw_only=True):
    """An order as stored. It is good for the business date on which it was decided.

    `dealer` has it over a session, for the reason in `taken_because`; without one it is worked by hand. `cancel_asked`
    once the dealer is asked to cancel it.
    """

    table = "dealer_order"
    key_column = "order_id"
    noun = "order"
    fingerprinted = True

    customer_id: UUID
    order_id: UUID
    round_no: int
    cusip: str
    side: Side
    units: int
    filled_units: int = 0
    settles_on: date
    limit_micros: int
    mark_micros: int
    cause: OrderCause
    status: OrderStatus = OrderStatus.NEW
    status_reason: str | None = None
    business_date: date
    decided_at: datetime
    updated_at: datetime
    dealer: str | None = None
    taken_because: str | None = None
    cancel_asked: bool = False

    @property
    def open_units(self) -> int:
        """The units that are not filled."""
        return self.units - self.filled_units


class Quote(Row, frozen=True, kw_only=True):
    """A dealer's price for an order; `reference` is its id at the dealer, over a session."""

    table = "dealer_quote"
    key_column = "quote_id"
    noun = "quote"
    fingerprinted = True

    customer_id: UUID
    quote_id: UUID
    order_id: UUID
    dealer: str
    price_micros: int
    units: int
    quoted_at: datetime
    expires_at: datetime
    reference: str | None = None


class Execution(Row, frozen=True, kw_only=True):
    """An execution as stored, never changed. `flags` are warnings, separated by commas."""

    table = "execution"
    key_column = "execution_id"
    fingerprinted = True

    customer_id: UUID
    execution_id: UUID
    order_id: UUID
    dealer: str
    reference: str
    kind: ExecutionKind
    corrects: UUID | None = None
    side: Side
    cusip: str
    units: int
    price_micros: int
    money: int
    settles_on: date
    executed_at: datetime
    business_date: date
    recorded_at: datetime
    entry_no: int
    flags: str | None = None


class ReferencedOrder(NamedTuple):
    """An order that a command names, with its quotes."""

    row: DealerOrder
    quotes: tuple[Quote, ...] = ()


class ReferencedExecution(NamedTuple):
    """An execution that a command names, and whether a correction or bust has replaced it."""

    row: Execution
    is_replaced: bool


class DealerSettlement(Row, frozen=True, kw_only=True):
    """A confirmed settlement with a dealer: bills received and cents paid, negative for sales.

    `difference` was paid beyond `money` and accepted as a loss.
    """

    table = "dealer_settlement"

    customer_id: UUID
    entry_no: int
    dealer: str
    cusip: str
    settles_on: date
    closed_on: date
    units: int
    money: int
    instruction_id: UUID | None = None
    difference: int = 0


class InventoryPosition(Row, frozen=True, kw_only=True):
    """The bank's own bills of a CUSIP at a close; `redeemed` of them at maturity."""

    table = "inventory_position"

    customer_id: UUID
    closed_on: date
    cusip: str
    units: int
    mark_micros: int
    redeemed: int = 0


class OrderPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An order and its state, for operators."""

    order_id: UUID
    cusip: str
    side: Side
    units: int
    filled_units: int
    reason: str | None = None


class ExecutionPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An execution, for operators."""

    execution_id: UUID
    order_id: UUID
    dealer: str
    units: int
    money: int
    flags: str | None = None


_ID = UUID(int=0)
_ORDER = OrderPayload(order_id=_ID, cusip="912797PT8", side=Side.BUY, units=100, filled_units=0)
_EXECUTION = ExecutionPayload(execution_id=_ID, order_id=_ID, dealer="x", units=100, money=99_000_00)
ORDER_EVENTS: Final = {
    each: EventKind(f"order.{each.lower()}", f"An order to dealers became {each}.", _ORDER) for each in OrderStatus
}
EXECUTION_EVENTS: Final = {
    each: EventKind(f"execution.{each.lower()}", f"A dealer's {each} was booked.", _EXECUTION) for each in ExecutionKind
}
"""Events of the bank's own log. No API shows them: operators read them in the console."""
