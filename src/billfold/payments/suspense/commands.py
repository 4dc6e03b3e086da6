"""What may be asked of money for which no owner is found."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.rules import assign_from_suspense, hold_in_suspense, return_from_suspense
from billfold.payments.suspense.types import SuspenseItem
from billfold.payments.wires.types import WireRow


class HoldInSuspense(Command, frozen=True, kw_only=True):
    """Keep a payment that reached nobody. `amount` in cents; `details` is all its rail tells.

    What the `details` name as its fee is part of the amount, and comes from the house.
    `settles_on` is when the rail settles it, today if it does at once.
    """

    rule = hold_in_suspense
    fingerprints = (SuspenseItem,)

    item_id: UUID
    rail: Rail
    direction: Direction
    amount: int
    reason: str
    details: dict[str, Any]
    settles_on: date | None = None


class ReturnFromSuspense(Command, frozen=True, kw_only=True):
    """Send it back the way it came. Looks at the item."""

    rule = return_from_suspense
    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "returned", fields=("item_id", "reason"))

    item_id: UUID
    reason: str
    settles_on: date | None = None


class AssignFromSuspense(Command, frozen=True, kw_only=True):
    """Book it at the portal it was meant for. `customers` are the house and the owner."""

    rule = assign_from_suspense
    reference_kinds = (Reference.SUSPENSE_ITEM,)
    audit = AuditedAction("suspense", "assigned", fields=("item_id", "portal_id"))
    fingerprints = (WireRow,)

    item_id: UUID
    portal_id: UUID
    pocket_id: UUID
