"""A Pocket as stored, with everything it holds."""

from datetime import date, datetime
from typing import Final, Protocol, runtime_checkable
from uuid import UUID

import msgspec

from billfold.platform.database.rows import Row

POCKET_CLOSED_JOB: Final = "pocket.closed"
"""Closes what belongs to a closed pocket; its object is the pocket."""


@runtime_checkable
class OpenPayment(Protocol):
    """A payment of a pocket that may still be under way, whatever its rail."""

    @property
    def pocket_id(self) -> UUID:
        """The pocket it debits or credits."""

    @property
    def is_open(self) -> bool:
        """Is it still to be sent or collected?"""


class PocketRow(msgspec.Struct, frozen=True):
    """One pocket and its holdings: lots as parallel lists, cents and units as integers.

    `reserved` is what of `cash` is held for payments by card; `unsettled_discount` is what it costs to use cash
    that settles on `unsettled_on` before.
    `inflow`, `outflow`, `fees` and `realised` run since the pocket was opened; `fee_accrued`
    is in units of `tbills.ACCRUED_PER_CENT` up to and including `accrued_through`.
    """

    customer_id: UUID
    pocket_id: UUID
    partner_id: UUID
    name: str
    type: str
    status: str
    deposit_weeks: int
    reinvestment_weeks: int | None
    real_time_yield: bool
    opened_at: datetime
    inflow: int
    outflow: int
    fees: int
    realised: int
    fee_accrued: int
    accrued_through: date
    cash: int
    earnings_basis: int
    lot_cusips: list[str]
    lot_units: list[int]
    lot_dates: list[date]
    owed: int = 0
    reserved: int = 0
    unsettled_discount: int = 0
    unsettled_on: date | None = None

    def discount_on(self, day: date) -> int:
        """Return what it costs to use cash on this day that settles later."""
        return self.unsettled_discount if self.unsettled_on is not None and day < self.unsettled_on else 0

    def positions(self) -> dict[str, int]:
        """Units per CUSIP."""
        units_by_cusip: dict[str, int] = {}
        for cusip, units in zip(self.lot_cusips, self.lot_units, strict=True):
            units_by_cusip[cusip] = units_by_cusip.get(cusip, 0) + units
        return units_by_cusip


class Hold(Row, frozen=True, kw_only=True):
    """Cents of a pocket that may not leave before an instant."""

    table = "hold"
    key_column = "hold_id"

    customer_id: UUID
    hold_id: UUID
    pocket_id: UUID
    amount: int
    until: datetime
    cause: str
