"""The network's rules and what an entry is, for whoever decides: nothing here reads a row."""

from billfold.accounts.counterparties.rules.notification_of_change import CHANGE_CODES, Correction, correction_of
from billfold.payments.ach.rules.return_codes import RETURN_REASONS, may_reinitiate, returnable_until
from billfold.payments.ach.rules.risk import OriginationHistory, review_reason
from billfold.payments.ach.rules.windows import (
    WINDOWS,
    Schedule,
    Window,
    held_until,
    next_deadline,
    returns_expected_at,
    reversible_until,
    same_day_descriptive_date,
    schedule,
)
from billfold.payments.ach.types import (
    AMOUNT_MAX_CENTS,
    LINE_WIDTH,
    SEC_CODES,
    AchEntry,
    IncomingEntry,
    ReturnEntry,
    check_digit,
    return_of,
)

__all__ = [
    "AMOUNT_MAX_CENTS",
    "CHANGE_CODES",
    "LINE_WIDTH",
    "RETURN_REASONS",
    "SEC_CODES",
    "WINDOWS",
    "AchEntry",
    "Correction",
    "IncomingEntry",
    "OriginationHistory",
    "ReturnEntry",
    "Schedule",
    "Window",
    "check_digit",
    "correction_of",
    "held_until",
    "may_reinitiate",
    "next_deadline",
    "return_of",
    "returnable_until",
    "returns_expected_at",
    "reversible_until",
    "review_reason",
    "same_day_descriptive_date",
    "schedule",
]
