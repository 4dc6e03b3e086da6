"""On-us transfers as stored."""

from datetime import datetime
from uuid import UUID

from billfold.kit.rows import Row


class OnUsTransferRow(Row, frozen=True):
    """A transfer as stored; `request` is the JSON text of what was asked for."""

    table = "transfer"
    key_column = "transfer_id"

    customer_id: UUID
    transfer_id: UUID
    partner_id: UUID
    type: str
    status: str
    reason: str | None
    from_pocket_id: UUID
    to_pocket_id: UUID | None
    amount: int
    request: str
    created_at: datetime


class TransferRow(OnUsTransferRow, frozen=True):
    """A transfer as it is read: `payee_id` is the customer of the receiving pocket."""

    payee_id: UUID | None
