"""The network's rules and what an entry is, for whoever decides: nothing here reads a row."""

from billfold.payments.ach.rules.notifications_of_change import (
    CHANGE_CODES,
    Correction,
    correction_of,
)
from billfold.payments.ach.rules.return_codes import (
    RETURN_REASONS,
    may_present_again,
    returnable_until,
)
from billfold.payments.ach.rules.risk import History, concern
from billfold.payments.ach.rules.windows import (
    WINDOWS,
    Schedule,
    Window,
    answered_at,
    held_until,
    next_deadline,
    reversible_until,
    same_day_mark,
    schedule,
)
from billfold.payments.ach.types import (
    LINE_WIDTH,
    MOST_CENTS,
    SEC_CODES,
    AchEntry,
    Answered,
    Incoming,
    answered,
    check_digit,
)

__all__ = [
    "CHANGE_CODES",
    "LINE_WIDTH",
    "MOST_CENTS",
    "RETURN_REASONS",
    "SEC_CODES",
    "WINDOWS",
    "AchEntry",
    "Answered",
    "Correction",
    "History",
    "Incoming",
    "Schedule",
    "Window",
    "answered",
    "answered_at",
    "check_digit",
    "concern",
    "correction_of",
    "held_until",
    "may_present_again",
    "next_deadline",
    "returnable_until",
    "reversible_until",
    "same_day_mark",
    "schedule",
]
