"""A proposal to freeze something, or to end its freeze."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

import msgspec

REASON_CHARS_MAX = 500
PROPOSAL_LIFETIME = timedelta(days=7)
"""How long after it a proposal can be confirmed: over a weekend with a holiday."""


class FreezeSubject(StrEnum):
    """What is frozen."""

    CUSTOMER = "CUSTOMER"
    POCKET = "POCKET"
    CARD = "CARD"


class ProposalStatus(StrEnum):
    """CONFIRMED until the bank has done it; REFUSED when a rule did not let it."""

    PROPOSED = "PROPOSED"
    CONFIRMED = "CONFIRMED"
    APPLIED = "APPLIED"
    REFUSED = "REFUSED"
    WITHDRAWN = "WITHDRAWN"


class FreezeProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal as stored; `freezes` is False where it ends a freeze. Business time.

    `customer_id` is the bank itself, whose audit log proves the row; `owner_id` the customer whose it is.
    """

    proposal_id: UUID
    customer_id: UUID
    owner_id: UUID
    subject: FreezeSubject
    subject_id: UUID
    freezes: bool
    reason: str
    status: ProposalStatus
    proposed_by: str
    proposed_at: datetime
    decided_by: str | None
    decided_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Tell whether something is still to be done with it."""
        return self.status in {ProposalStatus.PROPOSED, ProposalStatus.CONFIRMED}

    @property
    def words(self) -> str:
        """What it does, in words."""
        return f"{'Freeze' if self.freezes else 'Unfreeze'} {self.subject.lower()} {self.subject_id}"
