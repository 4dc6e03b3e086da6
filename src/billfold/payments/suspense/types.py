"""A payment for which no owner was found."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from billfold.ledger.types import Direction, Rail
from billfold.platform.crypto import fingerprint
from billfold.platform.database.rows import Row


class SuspenseStatus(StrEnum):
    """Held, or how it ended."""

    HELD = "HELD"
    RETURNED = "RETURNED"
    ASSIGNED = "ASSIGNED"


NOT_RETURNABLE = "stays"
"""The detail of an item that cannot go back the way it came: why, and what to do instead."""

FEE = "fee"
"""The detail of an item that holds a fee too, in cents: the house gives it back with the rest."""


class SuspenseItem(Row, frozen=True, kw_only=True):
    """It as stored: `amount` in cents, fee and all; `details` JSON text of what its rail tells.

    `journal_no` and `ended_journal_no` are journals of the house, which `customer_id` is.
    """

    table = "suspense_item"
    key_column = "item_id"

    customer_id: UUID
    item_id: UUID
    rail: Rail
    direction: Direction
    amount: int
    status: SuspenseStatus
    reason: str
    details: str
    journal_no: int
    held_at: datetime
    ended_at: datetime | None = None
    ended_journal_no: int | None = None
    return_reason: str | None = None
    owner_id: UUID | None = None

    @property
    def proof(self) -> str:
        """The fingerprint of what stays as it is."""
        return fingerprint((self.details,))
