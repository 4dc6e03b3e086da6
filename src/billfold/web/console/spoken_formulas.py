"""Formulas of explanations in words: `C + sum(V)` as "cash plus the sum of the 5 values". Pure."""

import ast
from collections.abc import Mapping, Sequence

_SIGNS: Mapping[type[ast.operator], str] = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times", ast.Div: "divided by"}
_SUMS = (ast.Add, ast.Sub)
_ROUNDED = {"round", "floor"}


def spoken(formula: str, labels: Mapping[str, Sequence[str]]) -> str:
    """Return a formula in words, without its rounding; `labels` are those of the values of each symbol."""
    body = ast.parse(formula, mode="eval").body
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Name) and body.func.id in _ROUNDED:
        body = body.args[0]
    return _words(body, labels)


def _words(node: ast.expr, labels: Mapping[str, Sequence[str]]) -> str:
    match node:
        case ast.Name(id=symbol):
            said = _begun_low(labels[symbol][0])
        case ast.BinOp(left=left, op=sign, right=right):
            said = f"{_term(left, sign, labels)} {_SIGNS[type(sign)]} {_term(right, sign, labels, is_right=True)}"
        case ast.Call(func=ast.Name(id="sum"), args=[ast.Name(id=symbol)]):
            said = _sum(labels.get(symbol, ()))
        case ast.Call(func=ast.Name(id="round" | "floor"), args=[value, *_]):
            said = f"{_words(value, labels)}, rounded"
        case ast.Call(func=ast.Name(id="max"), args=[ast.Constant(value=0), value]):
            said = f"{_words(value, labels)}, but not below zero"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            said = f"the {_FUNCTIONS[name]} of {' and '.join(_words(each, labels) for each in arguments)}"
        case _:
            said = ast.unparse(node)
    return said


_FUNCTIONS = {"max": "greater", "min": "smaller", "sqrt": "square root"}


def _term(node: ast.expr, sign: ast.operator, labels: Mapping[str, Sequence[str]], *, is_right: bool = False) -> str:
    """Return a side of an operation, in parentheses where it would be misread."""
    said = _words(node, labels)
    if isinstance(node, ast.Call):
        return f"({said})" if ", " in said else said
    if not isinstance(node, ast.BinOp):
        return said
    return f"({said})" if is_right or (isinstance(node.op, _SUMS) and not isinstance(sign, _SUMS)) else said


def _sum(labels: Sequence[str]) -> str:
    if not labels:
        return "nothing"
    return _begun_low(labels[0]) if len(labels) == 1 else f"the sum of the {len(labels)} values"


def _begun_low(label: str) -> str:
    return label[:1].lower() + label[1:] if label[1:2].islower() else label
