"""An explanation as returned by both APIs, and its construction: values are computed from the formulas."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from enum import StrEnum
from fractions import Fraction
from functools import cache
from math import floor
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from billfold.http.schemas import Amount, BankTime, one_of, usd
from billfold.platform.dates import iso_z
from billfold.platform.errors import InvariantError

Values = Mapping[str, Sequence[Fraction]]
"""The values of each symbol; a symbol with several values is only used in `sum`."""

_SQRT_DIGITS = 60
_DECIMALS = 12
_HALF = Fraction(1, 2)


def evaluate(formula: str, values: Values) -> Fraction:
    """Return the value of a formula. Raises KeyError for a symbol without a value."""
    return _value(_parsed(formula), values)


def decimal_text(value: Fraction) -> tuple[str, bool]:
    """Return a value as a decimal number, and whether that is exact; if not, it is rounded to twelve decimals."""
    places, rest = 0, value.denominator
    while rest % 10 == 0:
        places, rest = places + 1, rest // 10
    for factor in (2, 5):
        while rest % factor == 0:
            places, rest = places + 1, rest // factor
    exact = rest == 1
    places = places if exact else _DECIMALS
    digits = floor(value * 10**places + _HALF)
    return format(Decimal(digits).scaleb(-places), "f"), exact


@cache
def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def _value(node: ast.expr, values: Values) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number):
            result = Fraction(str(number))
        case ast.Name(id=symbol):
            (result,) = values[symbol]
        case ast.BinOp(left=left, op=sign, right=right):
            result = _OPERATORS[type(sign)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id="sum"), args=[ast.Name(id=symbol)]):
            result = sum(values.get(symbol, ()), Fraction())
        case ast.Call(func=ast.Name(id=name), args=arguments):
            result = _FUNCTIONS[name](*(_value(each, values) for each in arguments))
        case _:
            raise ValueError(f"not a formula: {ast.unparse(node)}")
    return result


def _round(value: Fraction, decimals: Fraction = Fraction()) -> Fraction:
    return _floor(value + _HALF / 10 ** int(decimals), decimals)


def _floor(value: Fraction, decimals: Fraction = Fraction()) -> Fraction:
    scale = 10 ** int(decimals)
    return Fraction(floor(value * scale), scale)


def _sqrt(value: Fraction) -> Fraction:
    with localcontext(prec=_SQRT_DIGITS):
        return Fraction((Decimal(value.numerator) / value.denominator).sqrt())


_OPERATORS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: Mapping[str, Callable[..., Fraction]] = {
    "floor": _floor,
    "max": max,
    "min": min,
    "round": _round,
    "sqrt": _sqrt,
}


class Unit(StrEnum):
    """The unit of a value. In formulas a date is its number of days, an instant its number of seconds."""

    CENTS = "CENTS"
    CENTS_PER_SECOND = "CENTS_PER_SECOND"
    USD_PER_100 = "USD_PER_100"
    """Dollars per $100 of face value."""
    PERCENT = "PERCENT"
    FRACTION = "FRACTION"
    UNITS = "UNITS"
    """Bills of $100 face value."""
    COUNT = "COUNT"
    DAYS = "DAYS"
    SECONDS = "SECONDS"
    BASIS_POINTS = "BASIS_POINTS"
    FEE_UNITS = "FEE_UNITS"
    """3,650,000 of them are one cent."""
    DATE = "DATE"
    INSTANT = "INSTANT"
    TEXT = "TEXT"
    """No number: a status, or an answer in words."""


class RowKind(StrEnum):
    """The kind of a row behind an amount."""

    LOT = "LOT"
    TRADE = "TRADE"
    TRANSACTION = "TRANSACTION"
    SNAPSHOT = "SNAPSHOT"
    ACCOUNT = "ACCOUNT"
    RATE = "RATE"
    PRICE = "PRICE"
    POCKET = "POCKET"
    HOLD = "HOLD"
    WIRE = "WIRE"
    ACH_ENTRY = "ACH_ENTRY"
    TRANSFER = "TRANSFER"
    TRANSFER_REQUEST = "TRANSFER_REQUEST"
    APPROVAL_RULE = "APPROVAL_RULE"


_UNIT = one_of(*Unit)


class Row(msgspec.Struct, kw_only=True):
    """A source of an amount, identified so that it can be looked up.

    A lot or an account has its number in the ledger of the customer, trades and transactions have their id; `entry_no`
    is
    the number of the journal entry.
    """

    kind: Annotated[str, one_of(*RowKind)]
    label: str
    id: str | UnsetType = UNSET
    entry_no: int | UnsetType = UNSET
    posting_no: int | UnsetType = UNSET
    cusip: str | UnsetType = UNSET
    units: int | UnsetType = UNSET
    amount: Amount | UnsetType = UNSET
    rate: str | UnsetType = UNSET
    price: str | UnsetType = UNSET
    on: date | UnsetType = UNSET
    at: datetime | UnsetType = UNSET
    source: str | UnsetType = UNSET


class Input(msgspec.Struct, kw_only=True):
    """An input value. The same symbol several times is a list, for use in `sum`."""

    symbol: str
    label: str
    value: str
    unit: Annotated[str, _UNIT]
    amount: Amount | None = None
    rows: list[Row] = []


class Step(msgspec.Struct, kw_only=True):
    """A formula and its value. A value that is not `exact` is shown with twelve decimals, and used in full.

    Without a formula it is what happened, or what happens next, with its instant or a text.
    """

    symbol: str
    label: str
    formula: str
    value: str
    unit: Annotated[str, _UNIT]
    amount: Amount | None = None
    exact: bool
    rounding: str | None = None


class Explanation(msgspec.Struct, kw_only=True):
    """The derivation of a value. The last step results in it; `parts` are inputs with their own explanations.

    Formulas have `+ - * / ( )`, `sum`, `min`, `max`, `sqrt`, `floor(x, n)`, and `round(x, n)`, which is half up, to n
    decimals or none. `more_rows` means that only the newest rows are shown. A TEXT has no formula: its steps are what
    led to it, in their order, and what comes next.
    """

    symbol: str
    label: str
    value: str
    unit: Annotated[str, _UNIT]
    amount: Amount | None = None
    words: str
    formula: str
    inputs: list[Input]
    parts: list[Explanation]
    steps: list[Step]
    rows: list[Row]
    more_rows: bool = False

    @property
    def cents(self) -> int:
        """The value in whole cents, for a unit of cents."""
        return int(self.value)


class Explained(msgspec.Struct, kw_only=True):
    """A field and its explanation; its prices were computed at `pricing_timestamp`."""

    field: str
    as_of: BankTime
    pricing_timestamp: datetime | None = None
    explanation: Explanation
    object_type: Literal["Explained"] = "Explained"


class Formula(NamedTuple):
    """A step before it is computed."""

    symbol: str
    formula: str
    unit: Unit
    label: str
    rounding: str | None = None


TO_CENT = "half up to the cent"

Given = int | str | date | Fraction


def given(symbol: str, label: str, value: Given, unit: Unit, *, rows: Sequence[Row] = ()) -> Input:
    """Return an input. Fractions must have a finite decimal notation."""
    if isinstance(value, datetime):
        text = iso_z(value.astimezone(UTC))
    elif isinstance(value, Fraction):
        text, exact = decimal_text(value)
        if not exact:
            raise InvariantError("An input is not a decimal number.", symbol=symbol)
    else:
        text = str(value)
    return Input(symbol=symbol, label=label, value=text, unit=unit, amount=_amount(text, unit), rows=list(rows))


def explain(
    label: str,
    words: str,
    *steps: Formula,
    comes_to: Given,
    inputs: Sequence[Input] = (),
    parts: Sequence[Explanation] = (),
    rows: Sequence[Row] = (),
    more_rows: bool = False,
) -> Explanation:
    """Return the explanation of a value as it is served.

    Raises InvariantError if the steps give another result: then this explanation is wrong.
    """
    values: dict[str, list[Fraction]] = {}
    known: list[Input | Explanation] = [*inputs, *parts]
    for each in known:
        values.setdefault(each.symbol, []).append(_number(each.value, each.unit))
    shown = []
    for step in steps:
        value = evaluate(step.formula, values)
        values[step.symbol] = [value]
        shown.append(_step(step, value))
    last = shown[-1]
    if not last.exact or _number(last.value, last.unit) != _number(str(comes_to), last.unit):
        raise InvariantError("An explanation does not come to the value.", label=label, value=str(comes_to))
    return Explanation(
        symbol=last.symbol,
        label=label,
        value=last.value,
        unit=last.unit,
        amount=last.amount,
        words=words,
        formula="; ".join(f"{each.symbol} = {each.formula}" for each in shown),
        inputs=list(inputs),
        parts=list(parts),
        steps=shown,
        rows=list(rows),
        more_rows=more_rows,
    )


def happened(label: str, at: datetime | date | str, *, amount: int | None = None) -> Step:
    """Return a step of a history: its instant, day or text, and the cents that it is about."""
    is_instant = isinstance(at, datetime)
    unit = Unit.INSTANT if is_instant else Unit.DATE if isinstance(at, date) else Unit.TEXT
    value = iso_z(at.astimezone(UTC)) if isinstance(at, datetime) else str(at)
    shown = None if amount is None else usd(amount)
    return Step(symbol="", label=label, formula="", value=value, unit=unit, amount=shown, exact=True)


def narrate(
    label: str,
    value: str,
    words: str,
    *steps: Step,
    parts: Sequence[Explanation | None] = (),
    rows: Sequence[Row] = (),
) -> Explanation:
    """Return the explanation of a value that is no number, by its history; parts that are None are left out."""
    return Explanation(
        symbol="",
        label=label,
        value=value,
        unit=Unit.TEXT,
        words=words,
        formula="",
        inputs=[],
        parts=[each for each in parts if each is not None],
        steps=list(steps),
        rows=list(rows),
    )


def _step(step: Formula, value: Fraction) -> Step:
    text, exact = decimal_text(value)
    if step.unit == Unit.DATE:
        text = date.fromordinal(int(value)).isoformat()
    return Step(
        symbol=step.symbol,
        label=step.label,
        formula=step.formula,
        value=text,
        unit=step.unit,
        amount=_amount(text, step.unit) if exact else None,
        exact=exact,
        rounding=step.rounding,
    )


def _amount(text: str, unit: str) -> Amount | None:
    return usd(int(text)) if unit == Unit.CENTS and text.lstrip("-").isdigit() else None


def _number(text: str, unit: str) -> Fraction:
    if unit == Unit.DATE:
        return Fraction(date.fromisoformat(text).toordinal())
    if unit == Unit.INSTANT:
        since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
        return Fraction(since.days * 86_400 + since.seconds) + Fraction(since.microseconds, 1_000_000)
    return Fraction(text)
