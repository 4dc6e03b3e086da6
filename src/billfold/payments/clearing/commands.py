"""The end of the bank's day."""

from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.commands import Command
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


class SettlementBlock(msgspec.Struct, frozen=True):
    """All trades of one bill at one price and side with one settlement date."""

    settles_on: date
    cusip: str
    price_micros: int
    side: str  # BUY, SELL or MATURITY
    units: int
    customers_cents: int


class RailTotals(msgspec.Struct, frozen=True):
    """The settlement of a rail on one date: incoming and outgoing cents."""

    settles_on: date
    rail: str  # "ACH", "WIRE", "CARD" or "CRYPTO"
    inflow: int
    outflow: int


class MovedPocket(msgspec.Struct, frozen=True):
    """A pocket of which something moves to another day."""

    pocket_id: UUID
    moved_to: date


class CloseBankDay(Command, frozen=True, kw_only=True):
    """Settle these blocks and rails; they are everything due by `day` and not yet settled.

    Customers due by the end of `day` have been brought up to date before.
    """

    needs_identifiers = False
    former_names = ("CloseHouseDay",)

    day: date
    blocks: tuple[SettlementBlock, ...]
    clearings: tuple[RailTotals, ...] = ()


class ReportMoves(Command, frozen=True, kw_only=True):
    """Tell a customer where what was to settle on `day` settles, now that the calendars have changed."""

    needs_identifiers = False

    day: date
    pockets: tuple[MovedPocket, ...]
