"""Executions as people write them: the fields of a form, or the lines of a CSV blotter. Pure.

Face is in dollars, price in dollars per $100 of face, money in dollars. Times without an offset are Eastern time.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.bills.types import is_valid_cusip
from billfold.platform.calendars import Calendars
from billfold.platform.dates import ET, et_date
from billfold.platform.errors import FieldError, InvalidInput
from billfold.trading.commands import NewExecution
from billfold.trading.types import DealerOrder, OrderStatus, Side

REQUIRED: Final = ("dealer", "reference", "side", "cusip", "face", "price", "money", "traded_at")
COLUMNS: Final = (*REQUIRED, "settles_on", "order")
"""The columns of a blotter, in any order. The last two may be missing or empty."""
LINES_MAX = 2_000
_CENTS_OF_A_UNIT = 100_00
_MICROS = 1_000_000
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,6})?", re.ASCII)
_REFERENCE = re.compile(r"[!-~]{1,64}", re.ASCII)


class BlotterLine(NamedTuple):
    """A line: the execution, or the reason why there is none. Without an order the oldest one that fits gets it."""

    line_no: int
    execution: NewExecution | None
    problem: str = ""


def read_blotter(text: str, calendars: Calendars, orders: "OpenOrders") -> list[BlotterLine]:
    """Return the lines of a blotter. Raises InvalidInput for a header without the columns, or too many lines.

    Each line is read by itself, so that an open quotation mark ends with its line.
    """
    header, *lines = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()] or [""]
    names = [name.strip().lower() for name in _cells(header) or []]
    if missing := [name for name in REQUIRED if name not in names]:
        raise InvalidInput.at("blotter", msg=f"must begin with a line of the columns; {', '.join(missing)} is missing")
    if len(lines) > LINES_MAX:
        raise InvalidInput.at("blotter", msg=f"must have at most {LINES_MAX} lines")
    return list(_lines(names, lines, calendars, orders))


def _lines(
    names: Sequence[str], lines: Iterable[str], calendars: Calendars, orders: "OpenOrders"
) -> Iterator[BlotterLine]:
    for line_no, line in enumerate(lines, start=2):
        cells = _cells(line)
        if cells is None or len(cells) != len(names):
            yield BlotterLine(line_no, None, f"It is not a line of {len(names)} cells.")
            continue
        try:
            yield BlotterLine(line_no, read_execution(dict(zip(names, cells, strict=True)), calendars, orders))
        except InvalidInput as wrong:
            yield BlotterLine(line_no, None, "; ".join(f"{each.loc[-1]} {each.msg}" for each in wrong.errors))


def _cells(line: str) -> list[str] | None:
    try:
        return [cell.strip() for cell in next(csv.reader([line.rstrip("\r")], strict=True), [])]
    except csv.Error:
        return None


class OpenOrders:
    """Live orders, and the units of them that executions read before have taken."""

    def __init__(self, live: Iterable[DealerOrder]) -> None:
        self._live = [each for each in live if each.status != OrderStatus.NEW]
        self._taken = Counter[UUID]()

    def find(self, side: Side, cusip: str, units: int) -> UUID | None:
        """Return the oldest order of this side and bill with so many open units."""
        for each in self._live:
            open_units = each.open_units - self._taken[each.order_id]
            if (each.side, each.cusip) == (side, cusip) and open_units >= units:
                return each.order_id
        return None

    def take(self, order_id: UUID, units: int) -> None:
        """Count units of an order as taken."""
        self._taken[order_id] += units


def read_execution(fields: Mapping[str, str], calendars: Calendars, orders: OpenOrders) -> NewExecution:
    """Return the execution that fields describe. Raises InvalidInput with every error."""
    reader = _FieldReader(fields)
    traded_at, side = reader.instant("traded_at"), reader.side()
    units, rest = divmod(reader.number("face", 100), _CENTS_OF_A_UNIT)
    cusip, order = reader.text("cusip").upper(), reader.text("order")
    reader.require("face", units > 0 and not rest, "must be a multiple of $100")
    reader.require("cusip", is_valid_cusip(cusip), "must be a CUSIP")
    reader.require("reference", bool(_REFERENCE.fullmatch(reader.text("reference"))), "must be 1 to 64 characters")
    next_day = calendars.next_settlement_day(et_date(traded_at))
    settles_on = reader.day("settles_on", next_day)
    order_id = reader.order_id(order) if order else orders.find(side, cusip, units)
    reader.require("order", order_id is not None, "is missing: no live order of this side and bill has so many units")
    new = {name: reader.number(name, scale) for name, scale in (("price", _MICROS), ("money", 100))}
    if reader.errors or order_id is None:
        raise InvalidInput(reader.errors)
    orders.take(order_id, units)
    return NewExecution(
        order_id=order_id,
        dealer=reader.text("dealer").lower(),
        reference=reader.text("reference"),
        side=side,
        cusip=cusip,
        units=units,
        price_micros=new["price"],
        money=new["money"],
        settles_on=settles_on,
        executed_at=traded_at,
    )


def number_of(text: str, scale: int) -> int | None:
    """Return a decimal number like "1,250.50" times `scale`; None if it is none, or has more decimals."""
    plain = text.strip().replace(",", "").removeprefix("$")
    if not _NUMBER.fullmatch(plain):
        return None
    scaled = Decimal(plain) * scale
    return int(scaled) if scaled == int(scaled) else None


def _check_year(day: date) -> None:
    if not 2000 <= day.year < 2100:  # noqa: PLR2004 - no calendar is asked about other years
        raise ValueError(day)


class _FieldReader:
    """Reads fields and collects their errors; a field that is wrong reads as a harmless value."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields
        self.errors: list[FieldError] = []

    def text(self, name: str) -> str:
        """Return the text of a field."""
        return self._fields.get(name, "").strip()

    def require(self, name: str, accepted: bool, message: str) -> None:  # noqa: FBT001 - the condition
        """Collect an error unless a field is accepted; each field has one."""
        if not accepted and not any(each.loc == (name,) for each in self.errors):
            self.errors.append(FieldError((name,), message, "value_error"))

    def number(self, name: str, scale: int) -> int:
        """Return a number times `scale`."""
        found = number_of(self.text(name), scale)
        self.require(name, found is not None and found > 0, "must be a positive number")
        return found or 0

    def side(self) -> Side:
        """Return the side, of the bank."""
        try:
            return Side(self.text("side").upper())
        except ValueError:
            self.require("side", False, "must be BUY or SELL")  # noqa: FBT003 - as above
            return Side.BUY

    def instant(self, name: str) -> datetime:
        """Return the instant of a date and time."""
        try:
            at = datetime.fromisoformat(self.text(name))
            _check_year(at)
            return (at if at.tzinfo else at.replace(tzinfo=ET)).astimezone(UTC)
        except ValueError:
            self.require(name, False, "must be a date and time like 2025-06-02 10:31")  # noqa: FBT003 - as above
            return datetime(2000, 1, 3, tzinfo=UTC)

    def day(self, name: str, usual: date) -> date:
        """Return a date, or the usual one if it is left empty."""
        try:
            day = date.fromisoformat(self.text(name)) if self.text(name) else usual
            _check_year(day)
        except ValueError:
            self.require(name, False, "must be a date like 2025-06-03")  # noqa: FBT003 - as above
            return usual
        return day

    def order_id(self, text: str) -> UUID | None:
        """Return the id of an order."""
        try:
            return msgspec.convert(text, UUID)
        except msgspec.ValidationError:
            self.require("order", False, "must be the id of an order")  # noqa: FBT003 - as above
            return None
