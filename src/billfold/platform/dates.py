"""Instants and days: instants are stored in UTC, days are Eastern."""

import re
from datetime import UTC, date, datetime, time
from typing import TypeVar
from zoneinfo import ZoneInfo

DayOrInstant = TypeVar("DayOrInstant", bound=date)
ET = ZoneInfo("America/New_York")
"""Eastern time, the zone of the Federal Reserve, the bond market and every business date."""

FIRST_DAY, LAST_DAY = date(1600, 1, 1), date(2199, 12, 31)
"""The range of days in input. An instant on one of them is in the calendar of every zone, and of the database."""
DAY_RANGE = f"from {FIRST_DAY} to {LAST_DAY}"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def is_day(text: str) -> bool:
    """Tell whether a text is spelled YYYY-MM-DD, whether or not the day exists."""
    return _DAY.fullmatch(text) is not None


def parse_day(text: str) -> date:
    """Return the day of a text in the form YYYY-MM-DD, the only spelling. Raises ValueError, also out of range."""
    if not is_day(text):
        raise ValueError(f"a day is spelled YYYY-MM-DD, not {text}")
    return require_in_range(date.fromisoformat(text))


def parse_instant(text: str) -> datetime:
    """Return the instant of a date-time with an offset, in UTC. Raises ValueError, also out of range."""
    return require_in_range(require_aware(datetime.fromisoformat(text))).astimezone(UTC)


def is_in_range(at: date) -> bool:
    """Tell whether a day, or an instant by its day, is within the range of input."""
    return FIRST_DAY.year <= at.year <= LAST_DAY.year


def require_in_range(at: DayOrInstant) -> DayOrInstant:
    """Return a day or an instant within the range of input. Raises ValueError for others."""
    if not is_in_range(at):
        raise ValueError(f"{at.isoformat()} is not a day {DAY_RANGE}")
    return at


def et_date(at: datetime) -> date:
    """Return the Eastern calendar day of an aware instant. Raises ValueError when it is naive."""
    return require_aware(at).astimezone(ET).date()


def et_instant(day: date, clock_time: time | int, minute: int = 0) -> datetime:
    """Return the UTC instant at which a clock in New York shows this time on this day.

    Takes a `time`, or an hour and a minute. A time that a change to summer time skips is read
    with the offset before the change; one that occurs twice is its first occurrence.
    """
    if isinstance(clock_time, int):
        clock_time = time(clock_time, minute)
    return datetime.combine(day, clock_time, tzinfo=ET).astimezone(UTC)


def iso_z(at: datetime) -> str:
    """Return an aware instant as RFC 3339 in UTC: "2025-06-02T13:00:00.000000Z"."""
    utc = at if at.tzinfo is UTC else require_aware(at).astimezone(UTC)
    return utc.isoformat(timespec="microseconds")[:-6] + "Z"


def format_eastern(at: datetime) -> str:
    """Return an instant in New York time: "Mon 2025-06-02 09:00:00 EDT"."""
    return at.astimezone(ET).strftime("%a %Y-%m-%d %H:%M:%S %Z")


def format_moment(when: datetime | str, zone: str = ET.key) -> str:
    """Format an instant, or its text of RFC 3339, in a time zone, by default the bank's: "Jun 2, 2025, 9:00 AM ET"."""
    at = datetime.fromisoformat(when) if isinstance(when, str) else when
    local = at.astimezone(ZoneInfo(zone))
    name = "ET" if zone == ET.key else f"{local:%Z}"
    return f"{local:%b} {local.day}, {local.year}, {local.hour % 12 or 12}:{local:%M %p} {name}"


def format_day(when: date) -> str:
    """Format a date: "Jun 2, 2025"."""
    return f"{when:%b} {when.day}, {when.year}"


def require_aware(at: datetime) -> datetime:
    """Return `at` if it has an offset. Raises ValueError for a naive instant.

    A naive instant would be read in the time zone of the machine that runs the bank.
    """
    if at.tzinfo is None or at.utcoffset() is None:
        raise ValueError(f"an instant needs a time zone, {at.isoformat()} has none")
    return at
