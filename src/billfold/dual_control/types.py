"""A proposal to freeze something, to end its freeze, or to move money."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.identity.operators import Power

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


class Freeze(NamedTuple):
    """Who has frozen something, when (wall time) and why, by the entry of its owner's audit log."""

    entry_no: int
    actor_name: str
    recorded_at: datetime
    reason: str | None


class Movement(msgspec.Struct, frozen=True):
    """The command that moves money, by the name of its class, and what it does in words."""

    words: str
    kind: str
    command: msgspec.Raw


class FreezeProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal as stored; `freezes` is False where it ends a freeze or moves money. Business time.

    `customer_id` is the bank itself, whose audit log proves the row; `owner_id` the customer whose it is.
    `movement` is a `Movement` as JSON; such a proposal has no `subject`, and `subject_id` is what it is about.
    `ends_entry_no` names the freeze that it ends: the entry of the owner's audit log that says who froze it, and why.
    """

    proposal_id: UUID
    customer_id: UUID
    owner_id: UUID
    subject: FreezeSubject | None
    subject_id: UUID
    freezes: bool
    reason: str
    status: ProposalStatus
    proposed_by: str
    proposed_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    ends_entry_no: int | None = None
    movement: str | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether something is still to be done with it."""
        return self.status in {ProposalStatus.PROPOSED, ProposalStatus.CONFIRMED}

    @property
    def is_ending(self) -> bool:
        """Tell whether it is open and ends a freeze."""
        return self.is_open and self.movement is None and not self.freezes

    def is_too_old(self, now: datetime) -> bool:
        """Tell whether nobody may confirm it any more."""
        return self.status == ProposalStatus.PROPOSED and now - self.proposed_at > PROPOSAL_LIFETIME

    @property
    def words(self) -> str:
        """What it does, in words."""
        if self.subject is None:
            return self.read_movement().words
        return f"{'Freeze' if self.freezes else 'Unfreeze'} {self.subject.lower()} {self.subject_id}"

    @property
    def resource(self) -> str:
        """What the audit log of the bank calls it."""
        return "freeze" if self.movement is None else "movement"

    @property
    def power(self) -> Power:
        """What its proposer may do."""
        return Power.PROPOSE if self.movement is None else Power.MOVE_MONEY

    def read_movement(self) -> Movement:
        """Return what it moves, if it moves money."""
        return msgspec.json.decode(self.movement or "", type=Movement)
