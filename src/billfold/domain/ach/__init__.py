"""The rules of the ACH network: when entries go, when they settle, how long they may come back.

Owns windows, return reasons and notifications of change. Never moves money and reads no file.
"""

from billfold.domain.ach.changes import CHANGE_CODES, Correction, correction_of
from billfold.domain.ach.returns import (
    RETURN_REASONS,
    may_present_again,
    returnable_until,
)
from billfold.domain.ach.windows import WINDOWS, Schedule, Window, schedule

__all__ = [
    "CHANGE_CODES",
    "RETURN_REASONS",
    "WINDOWS",
    "Correction",
    "Schedule",
    "Window",
    "correction_of",
    "may_present_again",
    "returnable_until",
    "schedule",
]
