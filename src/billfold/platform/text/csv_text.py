"""Tables as CSV (RFC 4180, UTF-8), in the separators of either kind of country.

A cell that a spreadsheet would take for a formula gets an apostrophe in front. What counts is the first character that
is visible, in whatever width it is written.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

import msgspec

from billfold.platform.dates import require_aware

Cell = object
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_FORMULA_BEGINS, _LINE_ENDS = "=+-@", "\t\r\n"
_INVISIBLE = frozenset("CMZ")
"""Controls and formats, marks that stand on nothing, and spaces."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\U0001d159")
"""Letters and symbols without a shape."""
_PLAIN = re.compile(r"[0-9A-Za-z][ -+\--:<-{}~]*")
"""Cells that no spreadsheet takes for anything else, whatever separates its cells: most of them."""


class Separators(StrEnum):
    """What separates cells, and what decimals: comma and dot, or semicolon and comma as in continental Europe."""

    COMMA = "comma"
    SEMICOLON = "semicolon"


class _Dialect(NamedTuple):
    delimiter: str
    decimal_point: str
    others: re.Pattern[str]
    """Where spreadsheets of other countries and settings begin another cell, quoted or not."""


_DIALECTS: Final = {
    Separators.COMMA: _Dialect(",", ".", re.compile(r"([;|\t\r\n])")),
    Separators.SEMICOLON: _Dialect(";", ",", re.compile(r"([,;|\t\r\n])")),
}


def lines_of(rows: Iterable[Iterable[Cell]], separators: Separators = Separators.COMMA) -> bytes:
    """Return rows as lines of a file. A Decimal is written with the decimal point of the country."""
    dialect = _DIALECTS[separators]
    text = io.StringIO()
    cell = partial(_cell, dialect=dialect)
    csv.writer(text, delimiter=dialect.delimiter).writerows(map(cell, row) for row in rows)
    return text.getvalue().encode()


def cell_of(value: Cell, separators: Separators = Separators.COMMA) -> str:
    """Return a value as one cell: nothing for None, an instant as JSON spells it, in UTC."""
    return _cell(value, _DIALECTS[separators])


def _cell(value: Cell, dialect: _Dialect) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value:f}".replace(".", dialect.decimal_point)
    if isinstance(value, datetime):
        return str(msgspec.to_builtins(require_aware(value).astimezone(UTC)))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _PLAIN.fullmatch(text):
        return text
    first, *others = dialect.others.split(text)
    begin = "'" if _is_formula(text) and not _NUMBER.fullmatch(text) else ""
    return begin + first + "".join(_guarded(each, dialect) for each in others)


def _guarded(text: str, dialect: _Dialect) -> str:
    begin = text.lstrip('" ')
    stays = _NUMBER.fullmatch(begin) or dialect.others.match(begin) or not _is_formula(begin)
    return text if stays else "'" + text


def _is_formula(text: str) -> bool:
    """Tell whether the first character that is visible begins a formula, in whatever width it is written."""
    for char in unicodedata.normalize("NFKC", text):
        if char in _LINE_ENDS:
            return True
        if unicodedata.category(char)[0] not in _INVISIBLE and char not in _BLANK:
            return char in _FORMULA_BEGINS
    return False
