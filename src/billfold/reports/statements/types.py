"""A statement as it is listed, and the month that it covers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.platform.dates import et_date, et_instant

MADE_AT: Final = time(6)
"""From when on (ET) the statements of a month are made, on the first day of the next: what it booked is committed."""

LINES_MAX: Final = 5_000
"""How many lines of activity are printed one by one; of more there is one line per day and kind."""


class StatementType(StrEnum):
    """What is listed as a statement."""

    BANK = "BANK"
    BROKERAGE = "BROKERAGE"
    FORM_1099_INT = "1099-INT"
    FORM_1099_B = "1099-B"


MONTHLY: Final = (StatementType.BANK, StatementType.BROKERAGE)


class StatementRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a statement; `statement_id` is also the id of its file.

    `opening` and `closing` are in cents, None for tax forms. `entry_no` is the last journal entry that it covers.
    The first version has no `reason`.
    """

    customer_id: UUID
    statement_id: UUID
    pocket_id: UUID
    type: StatementType
    key: str
    version: int
    reason: str | None
    opening: int | None
    closing: int | None
    entry_no: int
    created_at: datetime

    @property
    def file_id(self) -> UUID:
        """The id of its file."""
        return self.statement_id


class Month(NamedTuple):
    """A calendar month, by its first day."""

    first_day: date

    @classmethod
    def parse(cls, key: str) -> Month:
        """Return the month that a key like 2026-01 names. Raises ValueError."""
        return cls(datetime.strptime(key, "%Y-%m").date())  # noqa: DTZ007 - a month has no zone

    @classmethod
    def of(cls, at: datetime) -> Month:
        """Return the month that an instant is in."""
        return cls(et_date(at).replace(day=1))

    @classmethod
    def before(cls, at: datetime) -> Month:
        """Return the last month whose statements are due by an instant."""
        last = cls.of(at).previous
        return last if last.due_at <= at else last.previous

    @property
    def key(self) -> str:
        """The month as statements name it."""
        return f"{self.first_day:%Y-%m}"

    @property
    def name(self) -> str:
        """The month as people name it: "January 2026"."""
        return f"{self.first_day:%B %Y}"

    @property
    def previous(self) -> Month:
        """The month before."""
        return Month((self.first_day - timedelta(days=1)).replace(day=1))

    @property
    def next(self) -> Month:
        """The month after."""
        return Month((self.first_day + timedelta(days=31)).replace(day=1))

    @property
    def last_day(self) -> date:
        """Its last day."""
        return self.next.first_day - timedelta(days=1)

    @property
    def starts_at(self) -> datetime:
        """Its first instant, Eastern time."""
        return et_instant(self.first_day, 0)

    @property
    def due_at(self) -> datetime:
        """From when on its statements are made."""
        return et_instant(self.next.first_day, MADE_AT)
