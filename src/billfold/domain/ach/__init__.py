"""ACH entries: the network's rules for them, and as they are kept and read.

Owns windows, return reasons, notifications of change, the review, and every read of an entry.
Never moves money and reads no file.
"""

from billfold.domain.ach.changes import CHANGE_CODES, Correction, correction_of
from billfold.domain.ach.reads import (
    find_by_traces,
    get_entry,
    get_origination,
    list_originations,
    list_to_review,
    look_up,
    read_history,
)
from billfold.domain.ach.returns import (
    RETURN_REASONS,
    may_present_again,
    returnable_until,
)
from billfold.domain.ach.risk import History, concern
from billfold.domain.ach.types import (
    CREDIT,
    DEBIT,
    LINE_WIDTH,
    MOST_CENTS,
    ORIGINATION,
    RECEIVING,
    SEC_CODES,
    AchEntry,
    Answered,
    Incoming,
    answered,
    check_digit,
)
from billfold.domain.ach.windows import (
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

__all__ = [
    "CHANGE_CODES",
    "CREDIT",
    "DEBIT",
    "LINE_WIDTH",
    "MOST_CENTS",
    "ORIGINATION",
    "RECEIVING",
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
    "find_by_traces",
    "get_entry",
    "get_origination",
    "held_until",
    "list_originations",
    "list_to_review",
    "look_up",
    "may_present_again",
    "next_deadline",
    "read_history",
    "returnable_until",
    "reversible_until",
    "same_day_mark",
    "schedule",
]
