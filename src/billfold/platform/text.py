"""Text for people and programs: CSV files, names as plain text, and what is left out of logs.

A cell that a spreadsheet would read as a formula gets a leading apostrophe. The first visible
character counts, in any width.
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
"""Controls and formats, combining marks without a base, and spaces."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\U0001d159")
"""Letters and symbols without a glyph."""
_PLAIN = re.compile(r"[0-9A-Za-z][ -+\--:<-{}~]*")
"""Cells that no spreadsheet reads as anything else, whatever its separator: most of them."""


class Separators(StrEnum):
    """The cell and decimal separators: comma and dot, or semicolon and comma as in continental Europe."""

    COMMA = "comma"
    SEMICOLON = "semicolon"


class _Dialect(NamedTuple):
    delimiter: str
    decimal_point: str
    others: re.Pattern[str]
    """Matches where spreadsheets with other locales and settings begin another cell, quoted or not."""


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
    """Return a value as one cell: empty for None, an instant in JSON format, in UTC."""
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
    """Tell whether the first visible character begins a formula, in any width."""
    for char in unicodedata.normalize("NFKC", text):
        if char in _LINE_ENDS:
            return True
        if unicodedata.category(char)[0] not in _INVISIBLE and char not in _BLANK:
            return char in _FORMULA_BEGINS
    return False


CHARS_MAX: Final = 100
_NUMBERS: Final = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_ADDRESS: Final = re.compile(rf"://|\bwww\.\w|\w[.\u3002][^\W\d_]{{2,}}|[<>@]|{_NUMBERS.pattern}", re.IGNORECASE)
_MAIL: Final = re.compile(r"[(\"']*[\w.+'-]+@(?:[\w-]+\.)+[\w-]+[)\"'.,:;!?]*")
_NAME: Final = re.compile(r"[^\W\d_][^\W\d_ '\u2019.,\u00b7-]*(?:[ '\u2019.,\u00b7-]+[^\W\d_]*)*")
_KEPT: Final = frozenset(" '\u2019.,&()-/+#")
_POINT_IN_WORD: Final = re.compile(r"(?<=\S)[.\u2024\u3002\uff0e\uff61](?=[^\W\d_]|[^\x00-\x7f])")
"""A point before a letter, or before a possible accent or invisible character."""


def has_web_address(text: str) -> bool:
    """Tell whether an e-mail program would make part of a text a link, however its characters are written."""
    composed = unicodedata.normalize("NFKC", text)
    seen = "".join(each for each in composed if unicodedata.category(each) not in {"Cf", "Me", "Mn"})
    return _ADDRESS.search(seen) is not None


def is_name(text: str) -> bool:
    """Tell whether a text is a person's name: letters and the usual punctuation; no address, no digits."""
    composed = unicodedata.normalize("NFKC", text)
    letters = "".join(each for each in composed if not unicodedata.category(each).startswith("M"))
    return _NAME.fullmatch(letters) is not None and not has_web_address(text)


def plain_text(text: str, most: int = CHARS_MAX) -> str:
    """Return a text of letters, digits and common punctuation, without addresses that an e-mail program would link."""
    composed = unicodedata.normalize("NFKC", text)
    kept = "".join(each if each in _KEPT or unicodedata.category(each)[0] in "LMN" else " " for each in composed)
    spread = _NUMBERS.sub(lambda found: found[0].replace(".", ". "), kept.replace("//", " "))
    return " ".join(without_links(spread).split())[:most].strip()


def without_links(text: str) -> str:
    """Return a text whose words are no longer web addresses; e-mail addresses stay."""
    words = text.replace("://", " ").split(" ")
    return " ".join(each if _MAIL.fullmatch(each) else _POINT_IN_WORD.sub(". ", each) for each in words)


REDACTED = "[hidden]"
_CREDENTIAL = re.compile(r"\b(Bearer|DPoP|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# Everything a JWT may be part of, matched as a whole: searching for its beginning inside would scan a text as often as
# "eyJ" occurs in it.
_RUN = re.compile(r"[\w.-]+")
_JWT_BEGINS, _JWT_DOTS = "eyJ", 2
_URL_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END|\Z)", re.DOTALL)
_SSN = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")


def redact_text(text: str) -> str:
    """Return a text with anything that looks like a credential, a private key, a card number or an SSN masked."""
    text = _CREDENTIAL.sub(rf"\1 {REDACTED}", text)
    text = _RUN.sub(_mask_jwt, text)
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    return redact_numbers(text)


def redact_numbers(text: str, mask: str = REDACTED) -> str:
    """Return a text with card numbers and social security numbers masked."""
    text = _SSN.sub(mask, text)
    return _CARD.sub(lambda match: mask if is_card(match[0]) else match[0], text)


def _mask_jwt(run: re.Match[str]) -> str:
    before, found, jwt = run[0].partition(_JWT_BEGINS)
    return before + REDACTED if found and jwt.count(".") >= _JWT_DOTS else run[0]


def is_card(text: str) -> bool:
    """Tell whether a text has the length and the check digit (Luhn) of a card number."""
    digits = [int(char) for char in text if char.isdigit()]
    if not 13 <= len(digits) <= 19:  # noqa: PLR2004 - the lengths ISO/IEC 7812 allows
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(odd) + sum(sum(divmod(2 * digit, 10)) for digit in even)) % 10 == 0
