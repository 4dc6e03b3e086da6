"""When an entry we originate is handed over, when it settles, and when it counts as settled.

Sources: FedACH processing schedule; what is sent on which day is the bank's own rule (contract 9).
"""

from datetime import date, datetime, time
from typing import NamedTuple

import msgspec

from billfold.kit.calendars import Calendars
from billfold.kit.dates import ET, et_date, et_instant

SAME_DAY_BELOW_CENTS = 25_000_00
"""Entries below this settle on the day they are sent; from it on, on the next."""
TAKEN_BEFORE = time(12)
"""What is asked for later belongs to the next banking day."""
SETTLED_AFTER_DAYS = 2
"""Banking days after it was sent until an entry counts as settled: most returns are in by then."""


class Window(NamedTuple):
    """A file deadline of the operator, and the settlement of what was in the file (ET)."""

    name: str
    deadline: time
    settles: time


SAME_DAY = (
    Window("same-day 1", time(10, 30), time(13)),
    Window("same-day 2", time(14, 45), time(17)),
    Window("same-day 3", time(16, 45), time(18)),
)
NEXT_DAY = Window("next-day", time(2, 15), time(8, 30))
"""Its deadline is in the night after the day on which the entry is sent."""
WINDOWS = (*SAME_DAY, NEXT_DAY)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The way of one entry. `settled_at` is when it counts as settled on our side."""

    taken_on: date
    sent_on: date
    window: Window
    due_at: datetime
    effective_on: date
    settles_at: datetime
    settled_at: datetime


def schedule(now: datetime, amount: int, calendars: Calendars, *, is_credit: bool) -> Schedule:
    """Return when an entry of `amount` cents that is asked for `now` goes its way.

    A credit is sent once the bills that pay for it have settled, on the day after it was taken.
    """
    taken_on = _taken_on(now, calendars)
    sent_on = calendars.next_settlement_day(taken_on) if is_credit else taken_on
    if amount < SAME_DAY_BELOW_CENTS:
        window, effective_on = _first_window(now, sent_on), sent_on
        due_at = et_instant(sent_on, window.deadline)
    else:
        window, effective_on = NEXT_DAY, calendars.next_fed_day(sent_on)
        due_at = et_instant(effective_on, NEXT_DAY.deadline)
    counted_on = calendars.add_fed_days(sent_on, SETTLED_AFTER_DAYS)
    return Schedule(
        taken_on=taken_on,
        sent_on=sent_on,
        window=window,
        due_at=due_at,
        effective_on=effective_on,
        settles_at=et_instant(effective_on, window.settles),
        settled_at=et_instant(counted_on, NEXT_DAY.settles),
    )


def _taken_on(now: datetime, calendars: Calendars) -> date:
    today = et_date(now)
    in_time = now.astimezone(ET).time() < TAKEN_BEFORE
    if calendars.is_fed_day(today) and in_time:
        return today
    return calendars.next_fed_day(today)


def _first_window(now: datetime, sent_on: date) -> Window:
    """Return the first window of the day whose deadline is still to come."""
    for window in SAME_DAY:
        if now < et_instant(sent_on, window.deadline):
            return window
    raise AssertionError("what is taken before noon meets a window of its day")
