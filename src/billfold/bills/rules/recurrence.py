"""Days on which something repeats: a rule of RFC 5545, section 3.3.10, moved to days on which the Reserve is open.

Rules are of whole days, so no change to summer time moves one. The 31st is skipped in months without one, as the
standard says; the last day of each month is `BYMONTHDAY=-1`.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from dateutil.rrule import rrulestr

from billfold.platform.calendars import Calendars
from billfold.platform.dates import LAST_DAY, require_in_range
from billfold.platform.errors import InvalidInput

_PART = re.compile(r"([A-Z]+)=([A-Z0-9,+-]+)", re.ASCII)
_WEEKDAY = "(?:MO|TU|WE|TH|FR|SA|SU)"
# What the library would take for nothing, or fail at, is none of these: 0, a 13th month, a 53rd Monday of a month.
_VALUES = {
    "FREQ": "[A-Z]+", "INTERVAL": "[1-9][0-9]{0,2}", "COUNT": "[1-9][0-9]{0,2}", "UNTIL": "[0-9]{8}", "WKST": _WEEKDAY,
    "BYDAY": f"(?:[+-]?[1-5])?{_WEEKDAY}", "BYMONTH": "(?:1[0-2]|[1-9])",
    "BYMONTHDAY": "[+-]?(?:3[01]|[12][0-9]|[1-9])", "BYSETPOS": "[+-]?[1-9][0-9]?"
}  # fmt: skip
_OF_MONTHS = frozenset({"BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS"})
_MAX_LENGTH = 200
# The library looks for a day up to the year 9999. The calendar repeats every 400 years, so what has no day from a start
# that is 19 such periods later has none up to 2399, beyond all input, and that is found 20 times as fast.
_MOVED_YEARS = 19 * 400
_PARTS = {
    "DAILY": frozenset[str](), "WEEKLY": frozenset({"BYDAY", "WKST"}), "MONTHLY": _OF_MONTHS, "YEARLY": _OF_MONTHS
}  # fmt: skip


class OnClosedDay(StrEnum):
    """The treatment of a day on which the Reserve is closed."""

    BEFORE = "BEFORE"
    AFTER = "AFTER"
    SKIP = "SKIP"


class Occurrence(NamedTuple):
    """A day of the rule, which identifies it, and the business day that it is moved to; None is skipped."""

    day: date
    moved_to: date | None


class Recurrence(NamedTuple):
    """A checked rule from its first possible day on; only `limit` days of it count, none after `until`."""

    days: Iterable[datetime]
    limit: int | None
    until: date

    def occurrences(self, calendars: Calendars, closed: OnClosedDay) -> Iterator[Occurrence]:
        """Yield the occurrences in order. A day before the first possible one can be the business day of one."""
        for at in islice(self.days, self.limit):
            day = at.date()
            if day > self.until:
                return
            yield Occurrence(day, _moved(day, calendars, closed))


def parse_recurrence(text: str, start: date) -> Recurrence:
    """Return the rule of a text such as `FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=12`, from a day on.

    `UNTIL` is a day. Raises InvalidInput at `rule` for parts that a frequency does not take, and for no day at all.
    """
    parts = _parts_of(text)
    count, until = parts.pop("COUNT", None), parts.pop("UNTIL", None)
    try:
        last = LAST_DAY if until is None else datetime.strptime(until, "%Y%m%d").date()  # noqa: DTZ007 - a day
        last = min(last, LAST_DAY)
        kept = ";".join(f"{name}={value}" for name, value in parts.items())
        far, rule = (
            rrulestr(kept, dtstart=datetime.combine(day, time()))
            for day in (require_in_range(start).replace(year=start.year + _MOVED_YEARS), start)
        )
    except ValueError as error:
        raise _invalid("is not a rule of RFC 5545") from error
    if next(iter(far), None) is None or next(iter(rule)).date() > last:
        raise _invalid("has no day from its start to its end")
    return Recurrence(rule, None if count is None else int(count), last)


def _parts_of(text: str) -> dict[str, str]:
    """Return the parts of a rule by name, each in the spelling that its frequency takes."""
    found = [_PART.fullmatch(part) for part in text.split(";")] if len(text) <= _MAX_LENGTH else [None]
    pairs = [(part[1], part[2]) for part in found if part is not None]
    parts = dict(pairs)
    if len(pairs) != len(found) or len(parts) != len(pairs) or parts.get("FREQ") not in _PARTS:
        raise _invalid("must have FREQ=DAILY, WEEKLY, MONTHLY or YEARLY and other parts once, parted by semicolons")
    unknown = parts.keys() - {"FREQ", "INTERVAL", "COUNT", "UNTIL"} - _PARTS[parts["FREQ"]]
    if unknown:
        raise _invalid(f"cannot have {min(unknown)} with FREQ={parts['FREQ']}")
    for name, value in parts.items():
        values = value.split(",") if name.startswith("BY") else [value]
        if not all(re.fullmatch(_VALUES[name], each, re.ASCII) for each in values):
            raise _invalid(f"has a wrong {name}")
    if {"COUNT", "UNTIL"} <= parts.keys():
        raise _invalid("cannot have both COUNT and UNTIL")
    if parts["FREQ"] == "WEEKLY" and re.search("[0-9]", parts.get("BYDAY", "")):
        raise _invalid("cannot have a number in BYDAY with FREQ=WEEKLY")
    # The library takes the day of every month here, where the standard takes the month of the start.
    if parts["FREQ"] == "YEARLY" and "BYMONTHDAY" in parts and "BYMONTH" not in parts:
        raise _invalid("must have BYMONTH with FREQ=YEARLY and BYMONTHDAY")
    return parts


def _moved(day: date, calendars: Calendars, closed: OnClosedDay) -> date | None:
    match closed:
        case OnClosedDay.BEFORE:
            return calendars.fed_on_or_before(day)
        case OnClosedDay.AFTER:
            return calendars.fed_on_or_after(day)
        case OnClosedDay.SKIP:
            return day if calendars.is_fed_day(day) else None


def _invalid(message: str) -> InvalidInput:
    return InvalidInput.at("rule", msg=message)
