"""Windows: when an originated entry is sent, when it settles, and when it counts as settled.

Sources: FedACH processing schedule; the day on which an entry is sent is a rule of the bank (contract 9).
"""

from datetime import date, datetime, time
from typing import NamedTuple

import msgspec

from billfold.platform.calendars import Calendars
from billfold.platform.dates import ET, et_date, et_instant

SAME_DAY_BELOW_CENTS = 25_000_00
"""Entries below this amount settle on the day they are sent, others on the next banking day."""
SETTLED_AFTER_DAYS = 2
"""Banking days from sending until an entry counts as settled: most returns have arrived by then."""


class Window(NamedTuple):
    """A file deadline of the operator, and the settlement time of the file (ET)."""

    deadline: time
    settles: time


SAME_DAY = (Window(time(10, 30), time(13)), Window(time(14, 45), time(17)), Window(time(16, 45), time(18)))
NEXT_DAY = Window(time(2, 15), time(8, 30))
"""Its deadline is in the night after the sending day."""


HELD_DAYS = {"CCD": 3, "PPD": 5, "WEB": 5}
"""Banking days after settlement for which the money of a debit is held."""
RETURNS_IN_BY = time(7)
"""The time by which the returns of a day have arrived (ET), before business opens."""
REVERSAL_DAYS = 5
"""Banking days after settlement within which its originator may reverse an entry."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of one entry. `settled_at` is the time at which the bank counts it as settled."""

    due_at: datetime
    effective_on: date
    settles_at: datetime
    settled_at: datetime


def schedule(now: datetime, amount: int, calendars: Calendars, *, is_credit: bool, cutoff: time) -> Schedule:
    """Return the schedule of an entry of `amount` cents that is accepted `now`.

    From the cut-off on (ET) it belongs to the next banking day.

    A credit is sent on the next settlement day, when the bills that fund it have settled.
    """
    day = accepted_on(now, calendars, cutoff)
    sent_on = calendars.next_settlement_day(day) if is_credit else day
    if amount < SAME_DAY_BELOW_CENTS:
        window, effective_on = _first_window(now, sent_on), sent_on
        due_at = et_instant(sent_on, window.deadline)
    else:
        window, effective_on = NEXT_DAY, calendars.next_fed_day(sent_on)
        due_at = et_instant(effective_on, NEXT_DAY.deadline)
    counted_on = calendars.add_fed_days(sent_on, SETTLED_AFTER_DAYS)
    return Schedule(
        due_at=due_at,
        effective_on=effective_on,
        settles_at=et_instant(effective_on, window.settles),
        settled_at=et_instant(counted_on, NEXT_DAY.settles),
    )


def postponed(due_at: datetime, calendars: Calendars) -> Schedule | None:
    """Return the schedule for the same window on the next open day; None if the window's day has not been closed."""
    moved = calendars.settles_at(due_at)
    effective_on, deadline = et_date(moved), moved.astimezone(ET).time()
    window = next((each for each in (NEXT_DAY, *SAME_DAY) if each.deadline == deadline), None)
    if moved == due_at or window is None:
        return None
    counted_after = SETTLED_AFTER_DAYS - 1 if window == NEXT_DAY else SETTLED_AFTER_DAYS
    return Schedule(
        due_at=moved,
        effective_on=effective_on,
        settles_at=et_instant(effective_on, window.settles),
        settled_at=et_instant(calendars.add_fed_days(effective_on, counted_after), NEXT_DAY.settles),
    )


def accepted_on(now: datetime, calendars: Calendars, cutoff: time) -> date:
    """Return the banking day to which an entry accepted `now` belongs."""
    today = et_date(now)
    in_time = now.astimezone(ET).time() < cutoff
    if calendars.is_fed_day(today) and in_time:
        return today
    return calendars.next_fed_day(today)


def _first_window(now: datetime, sent_on: date) -> Window:
    """Return the first window of the day whose deadline has not passed."""
    for window in SAME_DAY:
        if now < et_instant(sent_on, window.deadline):
            return window
    raise AssertionError("no cut-off is later than the last deadline of a day")


def held_until(effective_on: date, sec_code: str, calendars: Calendars) -> datetime:
    """Return the instant until which the money of a debit is held."""
    return et_instant(calendars.add_fed_days(effective_on, HELD_DAYS[sec_code]), NEXT_DAY.settles)


def reversible_until(effective_on: date, calendars: Calendars) -> date:
    """Return the last day on which an entry that settled on this day may be reversed."""
    return calendars.add_fed_days(effective_on, REVERSAL_DAYS)


def next_deadline(now: datetime, calendars: Calendars) -> datetime:
    """Return the first deadline of any window strictly after `now`, because returns are sent in any window."""
    today = et_date(now)
    if calendars.is_fed_day(today):
        for window in (NEXT_DAY, *SAME_DAY):
            deadline = et_instant(today, window.deadline)
            if now < deadline:
                return deadline
    return et_instant(calendars.next_fed_day(today), NEXT_DAY.deadline)


def same_day_descriptive_date(due_at: datetime | None, effective_on: date | None) -> str:
    """Return the descriptive date of entries for a same-day window (SD1300), "" of others."""
    if effective_on is None:
        return ""
    deadlines = {et_instant(effective_on, window.deadline): window for window in SAME_DAY}
    window = deadlines.get(due_at) if due_at is not None else None
    return "" if window is None else f"SD{window.settles:%H%M}"


def returns_expected_at(settled_at: datetime, calendars: Calendars) -> datetime:
    """Return when the earliest returns of an entry arrive: early on the next banking day."""
    return et_instant(calendars.next_fed_day(et_date(settled_at)), RETURNS_IN_BY)
