"""Security transfers between this bank and another custodian."""

from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from billfold.platform.database.rows import Row


class SecurityTransferStatus(StrEnum):
    """The status of a security transfer."""

    PENDING = "PENDING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


class SecurityTransferDirection(StrEnum):
    """From another custodian, or to one."""

    IN = "IN"
    OUT = "OUT"


class MovedLot(msgspec.Struct, frozen=True, array_like=True):
    """A transferred lot: its journal entry, acquisition date, units and tax basis in cents.

    `account_no` is where the bills were; earlier releases did not write it down.
    """

    entry_no: int
    acquired_on: date
    units: int
    tax_basis: int
    account_no: int | None = None


class SecurityTransfer(Row, frozen=True, kw_only=True):
    """A security transfer as stored. `market_value` is in cents at booking.

    `lots` is the JSON text of what `moved_lots` returns.
    """

    table = "security_transfer"
    key_column = "transfer_id"

    customer_id: UUID
    transfer_id: UUID
    pocket_id: UUID
    direction: SecurityTransferDirection
    cusip: str
    units: int
    market_value: int
    status: SecurityTransferStatus
    counterparty_name: str
    counterparty_account: str
    lots: str
    created_at: datetime
    reason: str | None = None
    ended_at: datetime | None = None

    def moved_lots(self) -> tuple[MovedLot, ...]:
        """Return the transferred lots."""
        return msgspec.json.decode(self.lots, type=tuple[MovedLot, ...])
