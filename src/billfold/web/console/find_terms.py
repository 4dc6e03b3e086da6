"""Parsing of the words of a search: kinds of payments and trades, an amount, a month; the rest is a text. Pure."""

import calendar
import re
from datetime import date, timedelta
from typing import NamedTuple

from rapidfuzz.distance import OSA

from billfold.platform.errors import InvalidInput
from billfold.web.forms import cents_of

_WORD = re.compile(r"[^\s,;]+(?:,\d{3})*(?:\.\d+)?")
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_ABBREVIATIONS = {name[:3]: number for name, number in _MONTHS.items()}
_SAID = {
    ("type", "FEE"): "fee fees",
    ("type", "WIRE"): "wire wires",
    ("type", "ACH"): "ach",
    ("type", "CARD"): "card cards",
    ("type", "ON_US"): "transfer transfers reallocation",
    ("type", "CREDIT"): "credit credits promotion cashback adjustment",
    ("activity", "MATURITY"): "maturity maturities matured interest",
    ("activity", "BUY"): "purchase purchases bought buy",
    ("activity", "SELL"): "sale sales sold sell",
    ("direction", "CREDIT"): "received incoming deposit deposits",
    ("direction", "DEBIT"): "sent outgoing paid payment payments",
    ("earnings", "yes"): "earnings earned yield",
    ("none", "yes"): "a the of for from to in and all my our",
}
_MEANINGS = {word: meaning for meaning, words in _SAID.items() for word in words.split()}
_YEAR_CHARS = 4
_MISSPELLED_MIN, _LONG = 4, 7


class Terms(NamedTuple):
    """The words of a search by what they mean; `days` are the first and the last of the month that they name.

    `kinds` are a type and a direction of payments, an activity of trades, and whether earnings are meant.
    """

    kinds: dict[str, str]
    cents: tuple[int, int] | None
    days: tuple[date, date] | None
    text: str


def terms_of(text: str, today: date) -> Terms:
    """Return what a text means: `last month's wire fee`, `$1,250 received`, `maturities in July`."""
    month, year = _month_of(text.lower(), today)
    kinds, cents, rest = dict[str, str](), None, list[str]()
    for word in _WORD.findall(text.lower()):
        plain = word.removesuffix("'s").removesuffix("\u2019s").strip("'\".")
        if month and (_month_number(plain) or plain in {"last", "this", "month", str(year)}):
            continue
        if meaning := _meaning(plain):
            kinds.setdefault(*meaning)
        elif amount := _cents_between(plain):
            cents = amount
        else:
            rest.append(word)
    if "interest" in text.lower():
        kinds["earnings"] = "yes"
    days = None if month is None else (date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))
    return Terms(kinds, cents, days, " ".join(rest))


def is_like(word: str, other: str) -> bool:
    """Tell whether a word is the beginning of another one, or one of its typos."""
    if other.startswith(word):
        return True
    return len(word) >= _MISSPELLED_MIN and word[0] == other[0] and OSA.distance(word, other) <= 1


def _meaning(word: str) -> tuple[str, str] | None:
    if word in _MEANINGS or len(word) < _MISSPELLED_MIN:
        return _MEANINGS.get(word)
    return next((meaning for known, meaning in _MEANINGS.items() if is_like(word, known)), None)


def _month_of(text: str, today: date) -> tuple[int | None, int]:
    """Return the month that a text names, and its year: the newest that has begun unless the text says which."""
    if "last month" in text:
        before = today.replace(day=1) - timedelta(days=1)
        return before.month, before.year
    if "this month" in text:
        return today.month, today.year
    words = re.findall(r"[a-z]+|\d+", text)
    month = next(filter(None, map(_month_number, words)), None)
    year = next((int(each) for each in words if len(each) == _YEAR_CHARS and each.startswith("20")), None)
    return month, year or today.year - (month is not None and month > today.month)


def _month_number(word: str) -> int | None:
    found = _MONTHS.get(word) or _ABBREVIATIONS.get(word.removesuffix("t"))
    if found or len(word) < _LONG:
        return found
    return next((number for name, number in _MONTHS.items() if OSA.distance(word, name) <= 1), None)


def _cents_between(word: str) -> tuple[int, int] | None:
    """Return the smallest and the largest amount that a word means: `1,250` is any from 1,250.00 to 1,250.99."""
    try:
        cents = cents_of("q", word)
    except InvalidInput:
        return None
    return cents, cents if "." in word else cents + 99
