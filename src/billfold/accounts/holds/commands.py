"""A hold that a caller placed, and the commands that place and end it. A payment that names it captures it."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from typing_extensions import override

from billfold.accounts.pockets.commands import Hold
from billfold.ledger.book.book import Book
from billfold.ledger.commands import AuditedAction, Command, Reference

EXPIRY_JOB: Final = "hold.expiry"
"""Ends a hold that was neither captured nor released; its object is the hold."""
DURATION: Final = timedelta(days=7)
DURATION_MAX: Final = timedelta(days=30)
ACTIVE_MAX: Final = 100
"""Maximum number of holds of a Pocket at the same time: each is part of its customer's book."""


class HoldStatus(StrEnum):
    """ACTIVE while an amount is kept. A hold that was captured in part and then ended is RELEASED or EXPIRED."""

    ACTIVE = "ACTIVE"
    CAPTURED = "CAPTURED"
    RELEASED = "RELEASED"
    EXPIRED = "EXPIRED"


class PlacedHold(Hold, frozen=True, kw_only=True):
    """A hold of `placed` cents: `captured` by payments, `amount` still kept while it is ACTIVE, until an instant."""

    fingerprinted = True
    keeps_former = True
    proof_needed = "t.status IS NOT NULL"

    placed: int
    captured: int = 0
    status: HoldStatus = HoldStatus.ACTIVE
    reason: str
    created_at: datetime
    updated_at: datetime

    @property
    def kept(self) -> int:
        """The cents that it keeps now."""
        return self.amount if self.status == HoldStatus.ACTIVE else 0


class PlaceHold(Command, frozen=True, kw_only=True):
    """Keep cents in a Pocket until an instant."""

    audit = AuditedAction("hold", "placed", fields=("hold_id", "pocket_id", "amount", "until"))
    hold_id: UUID
    pocket_id: UUID
    amount: int
    until: datetime
    reason: str


class ReleaseHold(Command, frozen=True, kw_only=True):
    """End a hold; what was captured stays paid."""

    reference_kinds = (Reference.HOLD,)
    audit = AuditedAction("hold", "released", fields=("hold_id",))
    hold_id: UUID


class ExpireHold(Command, frozen=True, kw_only=True):
    """End a hold whose time is over."""

    reference_kinds = (Reference.HOLD,)
    hold_id: UUID


class Payment(Command, frozen=True, kw_only=True):
    """A payment out of a Pocket. It references the hold that it captures, if it names one."""

    hold_id: UUID | None = None

    @property
    @override
    def reads(self) -> tuple[Reference, ...]:
        return self.reference_kinds if self.hold_id is None else (*self.reference_kinds, Reference.HOLD)

    @override
    def bound(self, book: Book, now: datetime) -> tuple[str, ...]:
        """Return the fingerprint of the payee: whether and where it may be paid."""
        proofs = (getattr(book.referenced.get(each), "proof", None) for each in self.references)
        return tuple(each for each in proofs if each is not None)
