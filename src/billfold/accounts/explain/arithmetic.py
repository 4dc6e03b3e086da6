"""The formulas of explanations, computed with fractions: what is written is what is done."""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import floor

Values = Mapping[str, Sequence[Fraction]]
"""The values of each symbol; a symbol of several stands in `sum` only."""

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
