"""A payment for which no owner was found."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

HELD, RETURNED, ASSIGNED = "HELD", "RETURNED", "ASSIGNED"
STAYS = "stays"
"""The detail of an item that cannot go back the way it came: why, and what to do instead."""

FEE = "fee"
"""The detail of an item that holds a fee too, in cents: the house gives it back with the rest."""


class SuspenseItem(msgspec.Struct, frozen=True, kw_only=True):
    """It as stored: `amount` in cents, fee and all; `details` JSON text of what its rail tells.

    `journal_no` and `ended_journal_no` are journals of the house.
    """

    item_id: UUID
    rail: str
    direction: str
    amount: int
    status: str
    reason: str
    details: str
    journal_no: int
    held_at: datetime
    ended_at: datetime | None = None
    ended_journal_no: int | None = None
    return_reason: str | None = None
    owner_id: UUID | None = None
