"""What a day of the bank settles."""

from datetime import date
from uuid import UUID

import msgspec


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
