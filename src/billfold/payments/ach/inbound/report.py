"""The report of a file that was processed: what became of its entries, and those that were not simply booked."""

from enum import StrEnum
from typing import Any

import msgspec

from billfold.payments.ach.nacha.types import EntryLine
from billfold.payments.files.types import StuckLine

REPORTED_LINES_MAX = 1_000
"""Maximum entries listed in the report of a file: those that were not simply booked."""


class LineOutcome(StrEnum):
    """What became of an entry that was not simply booked."""

    SENT_BACK = "SENT_BACK"
    HELD = "HELD"
    RETURNED = "RETURNED"
    NOTED = "NOTED"
    FITS_NO_ENTRY = "FITS_NO_ENTRY"
    LISTED = "LISTED"


class AchFileReport(msgspec.Struct):
    """The report of a processed file. Amounts are cents."""

    entries: int = 0
    credits: int = 0
    debits: int = 0
    taken: int = 0
    sent_back: int = 0
    held: int = 0
    returns: int = 0
    changes: int = 0
    listed: int = 0
    lines: list[dict[str, Any]] = []
    stuck: list[StuckLine] = []

    def name(self, line: EntryLine, outcome: LineOutcome, code: str | None = None, reason: str = "") -> None:
        """List an entry with its outcome, and with the reason where the code does not say it."""
        self.listed += outcome == LineOutcome.LISTED
        if len(self.lines) < REPORTED_LINES_MAX:
            named = {"line": line.number, "trace": line.entry.trace_number, "outcome": outcome, "code": code}
            self.lines.append(named | ({"reason": reason} if reason else {}))
