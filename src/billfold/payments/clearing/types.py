"""What a rail has brought and taken, beside what the house has settled of it."""

from __future__ import annotations

from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

from billfold.platform.database.rows import Row

RAILS = ("ACH", "WIRE")


class RailSettlement(Row, frozen=True, kw_only=True):
    """One rail on one date as the house has settled it, in a journal entry of its own."""

    table = "clearing"

    customer_id: UUID
    journal_no: int
    rail: str
    settles_on: date
    closed_on: date
    came_in: int
    went_out: int


class ClearingTotals(NamedTuple):
    """One rail on one date, in cents: what moved, and how much of it the house has settled."""

    rail: str
    settles_on: date
    payments: int
    came_in: int
    went_out: int
    settled_in: int
    settled_out: int

    @property
    def unsettled_in(self) -> int:
        """Cents that came in and are not settled."""
        return self.came_in - self.settled_in

    @property
    def unsettled_out(self) -> int:
        """Cents that went out and are not settled."""
        return self.went_out - self.settled_out


class OpenPayment(NamedTuple):
    """A payment whose settlement has not come. `customer_id` is the house's for its own."""

    rail: str
    settles_at: datetime
    direction: str
    amount: int
    customer_id: UUID
    journal_no: int
    activity_id: UUID | None
