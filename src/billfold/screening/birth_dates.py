"""Dates of birth as OFAC writes them: "07 Oct 1952", "Oct 1952", "1952", "circa 1952", "1951 to 1953"."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final

from billfold.screening.types import Birth

CIRCA_YEARS: Final = 2
"""How many years before and after are meant by "circa"."""
_YEAR = re.compile(r"\b(?:18|19|20)\d\d\b")
_FORMAT: Final = "%d %b %Y"


def read_birth(text: str) -> Birth | None:
    """Return what a text says of a birth, None if it names no year."""
    years = [int(each) for each in _YEAR.findall(text)]
    if not years:
        return None
    about = CIRCA_YEARS if "circa" in text.casefold() else 0
    return Birth(min(years) - about, max(years) + about, None if about else _day(text))


def _day(text: str) -> date | None:
    try:
        return datetime.strptime(text.strip(), _FORMAT).date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return None
