"""Commands on money in suspense. `customers[0]` is the bank itself."""

from datetime import date
from typing import Any
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction, Rail


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
