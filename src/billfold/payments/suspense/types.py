"""Suspense items: payments that cannot be booked to a customer."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from typing_extensions import override

from billfold.ledger.types import Direction, Rail
from billfold.platform.database.rows import Row


class SuspenseStatus(StrEnum):
    """The status of an item."""

    HELD = "HELD"
    RETURNED = "RETURNED"
    ASSIGNED = "ASSIGNED"
    WRITTEN_OFF = "WRITTEN_OFF"


NOT_RETURNABLE = "stays"
"""The detail of an item that cannot be returned: the reason, and what to do instead."""

FEE = "fee"
"""The detail of an item that includes a fee, in cents: the bank refunds it with the rest."""


class SuspenseItem(Row, frozen=True, kw_only=True):
    """An item as stored: `amount` in cents including the fee; `details` JSON text of its rail's fields.

    `entry_no` and `ended_entry_no` are journal entries of the bank, whose id is `customer_id`.
    """

    table = "suspense_item"
    key_column = "item_id"
    fingerprinted = True

    customer_id: UUID
    item_id: UUID
    rail: Rail
    direction: Direction
    amount: int
    status: SuspenseStatus
    reason: str
    details: str
    entry_no: int
    created_at: datetime
    ended_at: datetime | None = None
    ended_entry_no: int | None = None
    return_reason: str | None = None
    owner_id: UUID | None = None

    @property
    @override
    def lasting(self) -> tuple[object, ...]:
        return (self.details,)
