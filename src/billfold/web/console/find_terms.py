"""What the words of a search mean: kinds of payments and trades, an amount, a month; the rest is a text. Pure."""

import calendar
import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from rapidfuzz.distance import OSA

from billfold.platform.errors import InvalidInput
from billfold.web.forms import cents_of

_WORD = re.compile(r"[^\s,;]+(?:,\d{3})*(?:\.\d+)?")
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_ABBREVIATIONS = {name[:3]: number for name, number in _MONTHS.items()}
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("fee", "fees"), "FEE"),
    **dict.fromkeys(("wire", "wires"), "WIRE"),
    "ach": "ACH",
    **dict.fromkeys(("card", "cards"), "CARD"),
    **dict.fromkeys(("transfer", "transfers", "reallocation"), "ON_US"),
    **dict.fromkeys(("credit", "credits", "promotion", "cashback", "adjustment"), "CREDIT"),
}
_ACTIVITIES: Mapping[str, str] = {
    **dict.fromkeys(("maturity", "maturities", "matured", "interest"), "MATURITY"),
    **dict.fromkeys(("purchase", "purchases", "bought", "buy"), "BUY"),
    **dict.fromkeys(("sale", "sales", "sold", "sell"), "SELL"),
}
_EARNINGS = frozenset({"interest", "earnings", "earned", "yield"})
_DIRECTIONS: Mapping[str, str] = {
    **dict.fromkeys(("received", "incoming", "deposit", "deposits"), "CREDIT"),
    **dict.fromkeys(("sent", "outgoing", "paid", "payment", "payments"), "DEBIT"),
}
_FILLERS = frozenset({"a", "the", "of", "for", "from", "to", "in", "and", "all", "my", "our"})
_YEAR_CHARS = 4
_MISSPELLED_MIN, _LONG = 4, 7


class Terms(NamedTuple):
    """The words of a search by what they mean; `days` are the first and the last of the month that they name."""

    types: tuple[str, ...] = ()
    activities: tuple[str, ...] = ()
    has_earnings: bool = False
    direction: str = ""
    cents: tuple[int, int] | None = None
    days: tuple[date, date] | None = None
    text: str = ""


def terms_of(text: str, today: date) -> Terms:
    """Return what a text means: `last month's wire fee`, `$1,250 received`, `maturities in July`."""
    month, year = _month_of(text.lower(), today)
    found: dict[str, list[str]] = {"types": [], "activities": [], "directions": [], "rest": []}
    cents, has_earnings = None, False
    for word in _WORD.findall(text.lower()):
        plain = word.removesuffix("'s").removesuffix("\u2019s").strip("'\".")
        if month and (_month_number(plain) or plain in {"last", "this", "month"} or plain == str(year)):
            continue
        amount = _cents_between(plain)
        has_earnings = has_earnings or plain in _EARNINGS
        for name, vocabulary in (("types", _TYPES), ("activities", _ACTIVITIES), ("directions", _DIRECTIONS)):
            if meant := _meaning(plain, vocabulary):
                found[name].append(meant)
                break
        else:
            if amount:
                cents = amount
            elif plain not in _FILLERS | _EARNINGS:
                found["rest"].append(word)
    direction = found["directions"][0] if found["directions"] else ""
    days = None if month is None else (date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))
    types, activities = tuple(found["types"]), tuple(found["activities"])
    return Terms(types, activities, has_earnings, direction, cents, days, " ".join(found["rest"]))


def is_like(word: str, other: str) -> bool:
    """Tell whether a word is another one, its beginning, or one of its typos."""
    if other.startswith(word):
        return True
    return len(word) >= _MISSPELLED_MIN and word[0] == other[0] and OSA.distance(word, other) <= 1


def _meaning(word: str, vocabulary: Mapping[str, str]) -> str:
    if word in vocabulary:
        return vocabulary[word]
    if len(word) < _MISSPELLED_MIN:
        return ""
    return next((meant for known, meant in vocabulary.items() if is_like(word, known)), "")


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
