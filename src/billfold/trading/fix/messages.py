"""Messages about quotes and orders between the bank and its dealers, as fields of FIX 4.4. Pure.

Face is in dollars (38), prices in the dealer's price type (423), money in dollars (381, 118).
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Final
from uuid import UUID

from billfold.bills.rules import pricing, yields
from billfold.bills.types import Bill
from billfold.platform.settings.trading_desk import DealerSession, PriceType
from billfold.trading.commands import NewExecution
from billfold.trading.fix.codec import Fields, format_time, read_time
from billfold.trading.types import DealerOrder, Side, sign_of

_MICROS, _MILLI, _CENTS, _FACE = 1_000_000, 1_000, 100, 100
_NUMBER_MAX = Decimal(10) ** 13
_REFERENCE_MAX = 64
_DATE = "%Y%m%d"
SIDES: Final[Mapping[Side, str]] = {Side.BUY: "1", Side.SELL: "2"}
NO_SYMBOL: Final = "[N/A]"
CANCEL: Final = "C-"
"""Begins the id of a cancel request; the order's id follows."""


class ExecType(StrEnum):
    """Kinds of execution reports (150) that mean something here."""

    NEW = "0"
    CANCELED = "4"
    REJECTED = "8"
    EXPIRED = "C"
    DONE_FOR_DAY = "3"
    TRADE = "F"
    TRADE_CORRECT = "G"
    TRADE_CANCEL = "H"
    ORDER_STATUS = "I"


class Unreadable(Exception):
    """A field is missing or makes no sense."""


class FieldReader:
    """Reads fields of a message. Raises Unreadable."""

    def has(self, tag: int) -> bool:
        """Tell whether a field is there."""
        return tag in self._fields

    def __init__(self, fields: Mapping[int, str]) -> None:
        self._fields = fields

    def text(self, tag: int) -> str:
        """Return a text that must be there, up to 64 printable characters."""
        found = self._fields.get(tag, "")
        if not found or len(found) > _REFERENCE_MAX or not found.isprintable():
            raise Unreadable(f"tag {tag} is missing or too long")
        return found

    def require_dollars(self) -> None:
        """Raise Unreadable for a price or a settlement (15, 120) in another currency."""
        others = {self._fields.get(tag, "USD") for tag in (15, 120)} - {"USD"}
        if others:
            raise Unreadable(f"the currency is {others.pop()[:8]!r}, not USD")

    def number(self, tag: int, scale: int = 1) -> int:
        """Return a number from zero on times `scale`, without a rest."""
        try:
            scaled = Decimal(self.text(tag)) * scale
        except InvalidOperation:
            scaled = Decimal(-1)
        if not (scaled.is_finite() and 0 <= scaled < _NUMBER_MAX * scale and scaled == int(scaled)):
            raise Unreadable(f"tag {tag} is {self._fields[tag]!r}")
        return int(scaled)

    def units(self, tag: int) -> int:
        """Return whole bills of a face value in dollars."""
        units, rest = divmod(self.number(tag), _FACE)
        if rest:
            raise Unreadable(f"tag {tag} is no multiple of ${_FACE}")
        return units

    def day(self, tag: int) -> date:
        """Return a date."""
        return self._at(tag, "-00:00:00").date()

    def instant(self, tag: int) -> datetime:
        """Return an instant."""
        return self._at(tag, "")

    def _at(self, tag: int, end: str) -> datetime:
        try:
            return read_time(self.text(tag) + end)
        except ValueError:
            raise Unreadable(f"tag {tag} is {self._fields[tag]!r}") from None

    def order_id(self, tag: int) -> UUID:
        """Return the id of an order."""
        try:
            return UUID(self.text(tag).removeprefix(CANCEL))
        except ValueError:
            raise Unreadable(f"tag {tag} is no order's id") from None

    def price(self, tag: int, usual: PriceType, bill: Bill, settles_on: date) -> int:
        """Return a price in micros, in the price type of the message or the dealer's."""
        kind = self._fields.get(423, usual)
        if kind == PriceType.PRICE:
            price = self.number(tag, _MICROS)
        elif kind == PriceType.DISCOUNT:
            price = pricing.price_from_rate(self.number(tag, _MILLI), (bill.maturity - settles_on).days)
        elif kind == PriceType.YIELD:
            rate = Decimal(self.number(tag, _MICROS)) / _MICROS
            price = yields.price_from_investment_rate(rate, settles_on, bill.maturity)
        else:
            raise Unreadable(f"tag 423 is {kind!r}")
        if price <= 0:
            raise Unreadable(f"tag {tag} is no price")
        return price

    def money(self) -> int:
        """Return the cents of 118 and 381; both must be equal where both are there."""
        found = {self.number(tag, _CENTS) for tag in (118, 381) if tag in self._fields}
        if len(found) != 1:
            raise Unreadable("tags 118 and 381 differ" if found else "tags 118 and 381 are missing")
        return found.pop()


def read_trade(fields: FieldReader, session: DealerSession, bill: Bill, order: DealerOrder) -> NewExecution:
    """Return the trade of an execution report; without 64 it settles as the order. Raises Unreadable."""
    side = {"1": Side.BUY, "2": Side.SELL}.get(fields.text(54))
    if side is None:
        raise Unreadable("tag 54 is neither 1 nor 2")
    settles_on = fields.day(64) if fields.has(64) else order.settles_on
    fields.require_dollars()
    return NewExecution(
        order_id=order.order_id,
        dealer=session.dealer,
        reference=fields.text(17),
        side=side,
        cusip=fields.text(48),
        units=fields.units(32),
        price_micros=fields.price(31, session.price_type, bill, settles_on),
        money=fields.money(),
        settles_on=settles_on,
        executed_at=fields.instant(60),
    )


def price_text(price_micros: int, kind: PriceType, bill: Bill, settles_on: date, side: Side) -> str:
    """Return a price in a price type, rounded in the bank's favor: never worse than the price itself."""
    if kind == PriceType.PRICE:
        return f"{Decimal(price_micros) / _MICROS:f}"
    days, sign = (bill.maturity - settles_on).days, sign_of(side)
    if kind == PriceType.DISCOUNT:
        rate = pricing.rate_from_price(price_micros, days)
        if sign * (pricing.price_from_rate(rate, days) - price_micros) > 0:
            rate += sign
        return f"{Decimal(rate) / _MILLI:f}"
    percent = yields.investment_rate(price_micros, settles_on, bill.maturity)
    if sign * (yields.price_from_investment_rate(percent, settles_on, bill.maturity) - price_micros) > 0:
        percent += sign * Decimal("0.001")
    return f"{percent:f}"


def _instrument(bill: Bill) -> list[tuple[int, object]]:
    """Return the bill: CUSIP, government, Treasury bill, its maturity."""
    maturity = bill.maturity.strftime(_DATE)
    return [(55, NO_SYMBOL), (48, bill.cusip), (22, 1), (460, 6), (167, "TBILL"), (541, maturity)]


def quote_request(order: DealerOrder, bill: Bill, now: datetime) -> Fields:
    """Return a QuoteRequest (R) for the open units of an order."""
    wanted = [(54, SIDES[order.side]), (38, order.open_units * _FACE), (64, order.settles_on.strftime(_DATE))]
    return [(131, order.order_id), (146, 1), *_instrument(bill), *wanted, (15, "USD"), (60, format_time(now))]


def new_order(
    order: DealerOrder, bill: Bill, now: datetime, *, kind: PriceType, price_micros: int, quote: str | None
) -> Fields:
    """Return a NewOrderSingle (D) for the day: with a dealer's QuoteID previously quoted, else limit."""
    price = price_text(price_micros, kind, bill, order.settles_on, order.side)
    return [
        (11, order.order_id),
        (64, order.settles_on.strftime(_DATE)),
        *_instrument(bill),
        *[(54, SIDES[order.side]), (60, format_time(now)), (38, order.units * _FACE), (40, "D" if quote else "2")],
        *[(423, kind), (44, price), (15, "USD"), (117, quote), (59, 0)],
    ]


def cancel_request(order: DealerOrder, bill: Bill, now: datetime) -> Fields:
    """Return an OrderCancelRequest (F)."""
    named = [(41, order.order_id), (11, f"{CANCEL}{order.order_id}")]
    wanted = [(54, SIDES[order.side]), (60, format_time(now)), (38, order.units * _FACE)]
    return [*named, *_instrument(bill), *wanted]


def status_request(order: DealerOrder, bill: Bill) -> Fields:
    """Return an OrderStatusRequest (H)."""
    return [(11, order.order_id), *_instrument(bill), (54, SIDES[order.side])]
