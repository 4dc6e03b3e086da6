"""What the operator may credit, adjust and correct."""

from __future__ import annotations

from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction
from billfold.payments.adjustments.rules import adjust_pocket, post_goodwill_credit, reverse_transaction


class PostGoodwillCredit(Command, frozen=True, kw_only=True):
    """Give a pocket `amount` cents: cash back, a promotion, or an adjustment in its favour."""

    rule = post_goodwill_credit
    former_names = ("GiveCredit",)
    audit = AuditedAction("pocket", "credited", fields=("amount", "credit_type", "description"))
    needs_identifiers = False

    pocket_id: UUID
    amount: int
    credit_type: str  # "CASH_BACK", "PROMOTION" or "ADJUSTMENT"
    description: str


class AdjustPocket(Command, frozen=True, kw_only=True):
    """Set a pocket right by `amount` cents. A DEBIT must be covered."""

    rule = adjust_pocket
    audit = AuditedAction("pocket", "adjusted", fields=("direction", "amount", "description"))
    needs_identifiers = False

    pocket_id: UUID
    direction: Direction
    amount: int
    description: str


class ReverseTransaction(Command, frozen=True, kw_only=True):
    """Take back one credit, adjustment or fee, whole and once. Looks at the activity."""

    rule = reverse_transaction
    former_names = ("CorrectBooking",)
    reference_kinds = (Reference.TRANSACTION,)
    audit = AuditedAction("activity", "corrected", fields=("description",))
    needs_identifiers = False

    activity_id: UUID
    description: str
