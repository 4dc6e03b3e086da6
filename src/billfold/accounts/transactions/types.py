"""What flows see of activity."""

from __future__ import annotations

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
