"""What flows see of activity."""

from datetime import datetime
from uuid import UUID

import msgspec


class BankBooking(msgspec.Struct, frozen=True):
    """A fee, a credit or an adjustment: its journal entry, cents, and whether it was reversed."""

    activity_id: UUID
    pocket_id: UUID
    entry_no: int
    journal_kind: str
    type: str
    direction: str
    amount: int
    cause: str | None
    is_corrected: bool


class TransactionRow(msgspec.Struct, frozen=True):
    """One row of activity; `details` and `remittance` are JSON text."""

    customer_id: UUID
    pocket_id: UUID
    entry_no: int
    posting_no: int
    activity_id: UUID
    transaction_id: UUID
    type: str
    direction: str
    amount: int
    title: str
    description: str
    booked_at: datetime
    settles_at: datetime
    details: str
    remittance: str | None
    written_no: int
    swept: bool = True

    @property
    def is_hold(self) -> bool:
        """Whether it shows what is reserved for a payment by card: nothing has moved."""
        return self.type == "CARD" and not self.swept
