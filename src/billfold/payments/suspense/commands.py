"""Commands on money in suspense. `customers[0]` is the bank itself."""

from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from typing_extensions import override

from billfold.ledger.commands import AuditedAction, Command, Reference
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


class HoldInSuspense(Command, frozen=True, kw_only=True):
    """Hold a payment in suspense. `amount` in cents; `details` has the fields of its rail.

    A fee in `details` is part of the amount and is paid by the bank. `settles_on` is the settlement
    date of the rail; None is today.
    """

    item_id: UUID
    rail: Rail
    direction: Direction
    amount: int
    reason: str
    details: dict[str, Any]
    settles_on: date | None = None


class ReturnFromSuspense(Command, frozen=True, kw_only=True):
    """Return an item by its rail: under `reason`, or `by_hand` if no message of ours can."""

    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "returned", fields=("item_id", "reason", "by_hand"))

    item_id: UUID
    reason: str
    settles_on: date | None = None
    by_hand: bool = False


class AssignFromSuspense(Command, frozen=True, kw_only=True):
    """Assign an item to a portal of its owner. `customers` are the bank and the owner.

    `details` are those of the item, sealed for the owner; None: as the item has them.
    """

    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "assigned", fields=("item_id", "portal_id"))

    item_id: UUID
    portal_id: UUID
    pocket_id: UUID
    details: dict[str, Any] | None = None


class ReleaseFromSuspense(Command, frozen=True, kw_only=True):
    """Post an item back to its rail: it is booked to its owner by a command of its rail."""

    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "assigned", fields=("item_id", "owner_id"))

    item_id: UUID
    owner_id: UUID
    settles_on: date


class WriteOffFromSuspense(Command, frozen=True, kw_only=True):
    """Post an item of the card rail, or a debit, to `losses`: it has no owner, and nobody takes it back."""

    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "written_off", fields=("item_id", "reason"))

    item_id: UUID
    reason: str
