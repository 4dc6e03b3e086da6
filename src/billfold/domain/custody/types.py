"""Bills on their way between us and a custodian elsewhere."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

import msgspec

PENDING, COMPLETED, REJECTED = "PENDING", "COMPLETED", "REJECTED"


class Moved(msgspec.Struct, frozen=True, array_like=True):
    """A lot that moved: the journal in which it did, its day, units and tax basis in cents."""

    journal_no: int
    acquired_on: date
    units: int
    tax_basis: int


class SecurityTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """It as stored. `direction` is "IN" or "OUT"; `market_value` in cents when it was booked."""

    customer_id: UUID
    transfer_id: UUID
    pocket_id: UUID
    direction: str
    cusip: str
    units: int
    market_value: int
    status: str
    counterparty_name: str
    counterparty_account: str
    lots: tuple[Moved, ...]
    created_at: datetime
    reason: str | None = None
    ended_at: datetime | None = None
