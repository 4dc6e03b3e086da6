"""Commands of the trading desk. Their customer is the bank itself."""

from datetime import date, datetime
from uuid import UUID

import msgspec

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.platform.ids import command_id
from billfold.platform.money import format_usd
from billfold.trading.types import Decision, OrderStatus, Side


class PlaceOrders(Command, frozen=True, kw_only=True):
    """Place the orders of round `round_no`, the next one. `references` is the desk, whose id is the bank's."""

    reference_kinds = (Reference.TRADING_DESK,)
    audit = AuditedAction("trading_desk", "orders_placed", fields=("round_no", "placed"))
    round_no: int
    decisions: tuple[Decision, ...]
    settles_on: date

    @property
    def placed(self) -> list[str]:
        """The orders for the audit log."""
        return [
            f"{order_id_of(self.round_no, place)}: {each.side} {each.units} {each.cusip}"
            for place, each in enumerate(self.decisions)
        ]


def order_id_of(round_no: int, place: int) -> UUID:
    """Return the id of an order, which derives from its decision: sent again, it is the same order."""
    return command_id("trading-desk", f"{round_no}:{place}")


class PauseDesk(Command, frozen=True, kw_only=True):
    """Pause the desk, which then places no orders, or resume it."""

    reference_kinds = (Reference.TRADING_DESK,)
    audit = AuditedAction("trading_desk", lambda command: "paused" if command.paused else "resumed", fields=("reason",))
    paused: bool
    reason: str


class ChangeOrder(Command, frozen=True, kw_only=True):
    """Record that an order was sent, is worked, or has ended without being filled completely.

    `dealer` is the one to whom it goes over a session. What such a dealer says is `by_dealer`: without it, CANCELLED
    only asks the dealer to cancel.
    """

    reference_kinds = (Reference.DEALER_ORDER,)
    audit = AuditedAction("order", lambda command: command.status.lower(), fields=("dealer", "reason"))
    order_id: UUID
    status: OrderStatus
    reason: str | None = None
    dealer: str | None = None
    by_dealer: bool = False


class RecordQuote(Command, frozen=True, kw_only=True):
    """Record a dealer's price for an order."""

    reference_kinds = (Reference.DEALER_ORDER,)
    audit = AuditedAction("order", "quoted", fields=("dealer", "price_micros", "units"))
    order_id: UUID
    dealer: str
    price_micros: int
    units: int
    reference: str | None = None
    valid_until: datetime | None = None


class NewExecution(msgspec.Struct, frozen=True, kw_only=True):
    """A fill as a dealer reports it: its own reference, and the money in cents."""

    order_id: UUID
    dealer: str
    reference: str
    side: Side
    cusip: str
    units: int
    price_micros: int
    money: int
    settles_on: date
    executed_at: datetime

    @property
    def execution_id(self) -> UUID:
        """The id, which derives from the dealer's reference."""
        return execution_id_of(self.dealer, self.reference)


def execution_id_of(dealer: str, reference: str) -> UUID:
    """Return the id of an execution: a reference of a dealer is booked once."""
    return command_id("execution", f"{dealer}:{reference}")


class RecordExecutions(Command, frozen=True, kw_only=True):
    """Book fills. One that is refused is named in the outcome and takes no other with it.

    `references` are the orders, and the ids that the executions get.
    """

    reference_kinds = (Reference.DEALER_ORDER, Reference.EXECUTION)
    audit = AuditedAction("execution", "recorded", fields=("recorded",))
    executions: tuple[NewExecution, ...]

    @property
    def recorded(self) -> list[str]:
        """The fills for the audit log."""
        return [
            f"{each.dealer} {each.reference}: {each.side} {each.units} {each.cusip} for {format_usd(each.money)}"
            for each in self.executions
        ]


class AmendExecution(Command, frozen=True, kw_only=True):
    """Book a dealer's correction or bust of an execution. A correction states the values that replace the former ones.

    `references` are the order, the execution, and the id that the new row gets.
    """

    reference_kinds = (Reference.DEALER_ORDER, Reference.EXECUTION)
    audit = AuditedAction("execution", lambda command: "busted" if command.is_bust else "corrected", ("reference",))
    execution_id: UUID
    order_id: UUID
    is_bust: bool
    reference: str
    units: int
    price_micros: int
    money: int
    settles_on: date
