"""Commands of security transfers from and to other custodians."""

from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from billfold.ledger.commands import AuditedAction, Command, Reference
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
    """A transferred lot: its journal entry, acquisition date, units, tax basis in cents, and the account it left."""

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


class ReceiveBills(Command, frozen=True, kw_only=True):
    """Receive one lot. `cost_cents` is its tax basis; None: its value on arrival."""

    audit = AuditedAction("pocket", "received", fields=("cusip", "units", "counterparty_name"))
    needs_identifiers = False

    transfer_id: UUID
    pocket_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str
    acquired_on: date | None = None
    cost_cents: int | None = None


class DeliverBills(Command, frozen=True, kw_only=True):
    """Deliver `units` of a bill, oldest lots first."""

    audit = AuditedAction("pocket", "delivered", fields=("cusip", "units", "counterparty_name"))
    needs_identifiers = False

    transfer_id: UUID
    pocket_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str


class EndDelivery(Command, frozen=True, kw_only=True):
    """Record the result from the custodian: delivered, or rejected for a `reason`."""

    reference_kinds = (Reference.SECURITY_TRANSFER,)
    needs_identifiers = False

    transfer_id: UUID
    reason: str | None = None
