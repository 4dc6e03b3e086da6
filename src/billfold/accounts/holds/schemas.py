"""A hold as both APIs accept and return it."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.holds.commands import DURATION, DURATION_MAX, HoldStatus, PlacedHold
from billfold.http.schemas import NOT_BLANK, Amount, one_of, usd

_AMOUNT_MAX = 999_999_999_999
HoldId = Annotated[UUID, msgspec.Meta(description="The hold that the payment captures: an amount up to what it keeps.")]
Named = HoldId | UnsetType
"""The hold that a payment names, if any."""


def named(hold_id: Named) -> UUID | None:
    """Return the hold that a payment captures, or None."""
    return None if hold_id is UNSET else hold_id


class CreateHold(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Cents to keep in the Pocket, and why."""

    amount_usdc: Annotated[int, msgspec.Meta(ge=1, le=_AMOUNT_MAX)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=NOT_BLANK)]
    expires_at: (
        Annotated[
            datetime,
            msgspec.Meta(
                tz=True, description=f"At most {DURATION_MAX.days} days from now; {DURATION.days} days if left out."
            ),
        ]
        | None
    ) = None


class PocketHold(msgspec.Struct, kw_only=True):
    """A hold of an `amount`: `captured` was paid by transfers that named it, `held` is still kept."""

    id: UUID
    pocket_id: UUID
    status: Annotated[str, one_of(*HoldStatus)]
    amount: Amount
    captured: Amount
    held: Amount
    reason: str
    time_created: datetime
    expires_at: datetime
    updated_at: datetime
    object_type: Literal["Hold"] = "Hold"


def render_hold(row: PlacedHold) -> PocketHold:
    """Return a hold for display."""
    return PocketHold(
        id=row.hold_id,
        pocket_id=row.pocket_id,
        status=row.status,
        amount=usd(row.placed),
        captured=usd(row.captured),
        held=usd(row.kept),
        reason=row.reason,
        time_created=row.created_at,
        expires_at=row.until,
        updated_at=row.updated_at,
    )
