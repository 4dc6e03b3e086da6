"""Commands about a Pocket."""

from datetime import date, datetime
from typing import Any, Final, Protocol, runtime_checkable
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import PocketStatus
from billfold.platform.calendars import Calendars
from billfold.platform.database.rows import Row

POCKET_CLOSED_JOB: Final = "pocket.closed"
"""Closes everything that belongs to a closed pocket; its object is the pocket."""


@runtime_checkable
class OpenPayment(Protocol):
    """A payment of a pocket that may still be in process, on any rail."""

    @property
    def pocket_id(self) -> UUID:
        """The pocket it debits or credits."""

    @property
    def is_open(self) -> bool:
        """True if it is still to be sent or collected."""


class PocketRow(msgspec.Struct, frozen=True):
    """One pocket and its holdings: lots as parallel lists, cents and units as integers.

    `reserved` is the part of `cash` held for card payments; `unsettled_discount` is the cost of using cash
    that settles on `unsettled_on` before that day.
    `inflow`, `outflow`, `fees` and `realised` run since the pocket was opened; `fee_accrued`
    is in units of `tbills.ACCRUED_PER_CENT` up to and including `accrued_through`.
    `last_entry` is the last journal entry of a state as of an instant.
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
    hold_amounts: list[int] = []
    hold_ends: list[datetime] = []
    last_entry: int | None = None

    def discount_on(self, day: date) -> int:
        """Return the cost of using unsettled cash on this day."""
        return self.unsettled_discount if self.unsettled_on is not None and day < self.unsettled_on else 0

    def held_cents(self, now: datetime, calendars: Calendars) -> int:
        """Return the cents that may not leave yet, as `PocketBook.held_cents` does."""
        holds = zip(self.hold_amounts, self.hold_ends, strict=True)
        return sum(amount for amount, until in holds if calendars.settles_at(until) > now)

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


class OpenPocket(Command, frozen=True, kw_only=True):
    """Open a pocket with its first bank portal. Strategies as weeks; None keeps matured cash."""

    needs_identifiers = True
    notes_on = ("pocket", "pocket_id")
    audit = AuditedAction("pocket", "created", fields=("name", "deposit_weeks", "reinvestment_weeks"))

    partner_id: UUID
    name: str
    deposit_weeks: int
    reinvestment_weeks: int | None
    type: str = "STANDARD"
    pocket_id: UUID | None = None
    real_time_yield: bool = False


class UpdatePocket(Command, frozen=True, kw_only=True):
    """Change the given fields; `keep_reinvestment` distinguishes None from not given.

    Closing references the Pocket, including its payments in process.
    """

    needs_identifiers = True
    reference_kinds = (
        Reference.OPEN_ACH_ENTRIES,
        Reference.OPEN_DISPUTES,
        Reference.OPEN_WIRES,
        Reference.OPEN_WITHDRAWALS,
    )
    notes_on = ("pocket", "pocket_id")
    audit = AuditedAction(
        "pocket",
        lambda c: "closed" if c.close_for else "updated",
        fields=("name", "deposit_weeks", "reinvestment_weeks", "close_for"),
    )

    pocket_id: UUID
    name: str | None = None
    deposit_weeks: int | None = None
    reinvestment_weeks: int | None = None
    keep_reinvestment: bool = True
    close_for: str | None = None

    @override
    def audited_fields(self) -> dict[str, Any]:
        """Return the given fields; the end of reinvestment is shown as None."""
        shown = super().audited_fields()
        if not self.keep_reinvestment:
            shown["reinvestment_weeks"] = self.reinvestment_weeks
        return shown


class SetPocketState(Command, frozen=True, kw_only=True):
    """Operator-only changes: freeze, unfreeze, switch `real_time_yield`."""

    needs_identifiers = True
    audit = AuditedAction("pocket", "updated", fields=("status", "real_time_yield"))

    pocket_id: UUID
    status: PocketStatus | None = None
    real_time_yield: bool | None = None
