"""Clearing totals of a rail: what moved, and what of it is settled."""

from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

from billfold.platform.database.rows import Row

RAILS = ("ACH", "WIRE", "CARD", "CRYPTO")


class RailSettlement(Row, frozen=True, kw_only=True):
    """The settlement of one rail on one date, with its journal entry."""

    table = "clearing"

    customer_id: UUID
    entry_no: int
    rail: str
    settles_on: date
    closed_on: date
    inflow: int
    outflow: int


class ClearingTotals(NamedTuple):
    """One rail on one date, in cents: what moved, and how much of it is settled."""

    rail: str
    settles_on: date
    payments: int
    inflow: int
    outflow: int
    settled_in: int
    settled_out: int

    @property
    def unsettled_in(self) -> int:
        """Incoming cents that are not settled."""
        return self.inflow - self.settled_in

    @property
    def unsettled_out(self) -> int:
        """Outgoing cents that are not settled."""
        return self.outflow - self.settled_out


class OpenPayment(NamedTuple):
    """A payment that is not settled yet. `customer_id` is the bank's own customer for payments of the bank."""

    rail: str
    settles_at: datetime
    direction: str
    amount: int
    customer_id: UUID
    entry_no: int
    activity_id: UUID | None
