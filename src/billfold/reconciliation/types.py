"""Statements as read, the days that are reconciled, and breaks. Money is in cents, bills in units."""

from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.platform.database.rows import Row
from billfold.platform.ids import command_id

CLAIM = "reconciliation"
"""One process at a time compares statements, or holds what they found."""


class Source(StrEnum):
    """The other side: the bank that keeps the reserve, the custodian, or a dealer."""

    RESERVE = "RESERVE"
    CUSTODIAN = "CUSTODIAN"
    DEALER = "DEALER"


class Cause(StrEnum):
    """The kind of a difference. The first is a day without a statement."""

    NO_STATEMENT = "NO_STATEMENT"
    UNKNOWN_LINE = "UNKNOWN_LINE"
    MISSING_LINE = "MISSING_LINE"
    DIFFERENT_AMOUNT = "DIFFERENT_AMOUNT"
    DIFFERENT_UNITS = "DIFFERENT_UNITS"
    DIFFERENT_TERMS = "DIFFERENT_TERMS"
    UNREADABLE_LINE = "UNREADABLE_LINE"
    BALANCE = "BALANCE"


class BreakStatus(StrEnum):
    """An open break is somebody's work."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


class Resolution(StrEnum):
    """The way a break was closed: by itself, with an explanation, or by a posting to the account of this name."""

    MATCHED = "MATCHED"
    EXPLAINED = "EXPLAINED"
    LOSSES = "LOSSES"
    INVENTORY = "INVENTORY"


class StatedLine(NamedTuple):
    """A line of a statement. `amount` is in cents, negative if it left the account; `shown` is the reference to show.

    A line of an earlier statement, whose break is open, has that break's id.
    """

    line_no: int
    amount: int
    references: frozenset[str] = frozenset()
    rail: str | None = None
    shown: str | None = None
    break_id: UUID | None = None


class ExpectedLine(NamedTuple):
    """A movement of the account in the ledger. Those of one posting share its `group`; `place` tells them apart."""

    subject: str
    amount: int
    references: frozenset[str] = frozenset()
    rail: str | None = None
    group: str = ""
    break_id: UUID | None = None
    place: int = 0


class OddLine(NamedTuple):
    """A line that cannot be read, and the reason."""

    line_no: int
    reason: str


class Trade(NamedTuple):
    """A trade as a dealer and the bank each have it; `side` is the bank's, price in micro-dollars per $100."""

    reference: str
    side: str
    cusip: str
    units: int
    price_micros: int
    money: int
    settles_on: date


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of one account and day: `lines` of money, `units` of bills by CUSIP, or `trades` with their lines.

    `is_final` is false for a report within the day.
    """

    source: Source
    account: str
    day: date
    is_final: bool = True
    opening: int | None = None
    closing: int | None = None
    lines: tuple[StatedLine, ...] = ()
    units: dict[str, int] = {}
    trades: tuple[tuple[int, Trade], ...] = ()
    odd: tuple[OddLine, ...] = ()

    @property
    def length(self) -> int:
        """The number of its lines."""
        return len(self.lines) + len(self.units) + len(self.trades) + len(self.odd)


def day_id(source: Source, account: str, day: date) -> UUID:
    """Return the id of a reconciled day."""
    return command_id("reconciled-day", f"{source}:{account}:{day}")


class ReconciledDay(Row, frozen=True, kw_only=True):
    """A day of one account: without a file its statement is missing. `opening` and `closing` are as stated."""

    table = "reconciled_day"
    key_column = "day_id"
    noun = "reconciled day"
    fingerprinted = True

    customer_id: UUID
    day_id: UUID
    source: Source
    account: str
    day: date
    file_id: UUID | None = None
    opening: int | None = None
    closing: int | None = None
    lines: int = 0
    matched: int = 0
    reconciled_at: datetime


def held_id(break_id: UUID) -> UUID:
    """Return the id of the item in suspense that holds the difference of a break."""
    return command_id("held-break", break_id)


class NewBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A difference. `stated` and `booked` are the two sides, None where one has nothing."""

    cause: Cause
    subject: str
    stated: int | None = None
    booked: int | None = None
    rail: str | None = None
    reference: str | None = None
    detail: str | None = None
    line_no: int | None = None


class Break(Row, frozen=True, kw_only=True):
    """A break as stored."""

    table = "reconciliation_break"
    key_column = "break_id"
    noun = "break"
    fingerprinted = True

    customer_id: UUID
    break_id: UUID
    source: Source
    account: str
    day: date
    file_id: UUID | None
    cause: Cause
    subject: str
    stated: int | None
    booked: int | None
    rail: str | None
    reference: str | None
    detail: str | None
    line_no: int | None
    seen_at: datetime
    status: BreakStatus = BreakStatus.OPEN
    owner: str | None = None
    note: str | None = None
    resolution: Resolution | None = None
    entry_no: int | None = None
    closed_at: datetime | None = None

    @property
    def difference(self) -> int:
        """The surplus of the statement over the ledger."""
        return (self.stated or 0) - (self.booked or 0)

    @property
    def counts_money(self) -> bool:
        """Return whether the two sides are cents; the custodian's are units."""
        return self.source != Source.CUSTODIAN
