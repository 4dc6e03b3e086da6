"""On-us transfers as stored."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from billfold.kit.rows import Row


class TransferStatus(StrEnum):
    """What became of an on-us transfer."""

    PENDING = "PENDING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


class OnUsTransferRow(Row, frozen=True):
    """A transfer as stored; `request` is the JSON text of what was asked for."""

    table = "transfer"
    key_column = "transfer_id"

    customer_id: UUID
    transfer_id: UUID
    partner_id: UUID
    type: str
    status: TransferStatus
    reason: str | None
    from_pocket_id: UUID
    to_pocket_id: UUID | None
    amount: int
    request: str
    created_at: datetime


class TransferRow(OnUsTransferRow, frozen=True):
    """A transfer as it is read: `payee_id` is the customer of the receiving pocket."""

    payee_id: UUID | None
