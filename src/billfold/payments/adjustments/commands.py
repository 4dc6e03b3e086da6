"""Commands of the operator: goodwill credits, adjustments and reversals."""

from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import Direction


class PostGoodwillCredit(Command, frozen=True, kw_only=True):
    """Credit a pocket with `amount` cents: cash back, a promotion or an adjustment."""

    former_names = ("GiveCredit",)
    audit = AuditedAction("pocket", "credited", fields=("amount", "credit_type", "description"))
    needs_identifiers = False

    pocket_id: UUID
    amount: int
    credit_type: str  # "CASH_BACK", "PROMOTION" or "ADJUSTMENT"
    description: str


class AdjustPocket(Command, frozen=True, kw_only=True):
    """Adjust a pocket by `amount` cents. The pocket must cover a DEBIT."""

    audit = AuditedAction("pocket", "adjusted", fields=("direction", "amount", "description"))
    needs_identifiers = False

    pocket_id: UUID
    direction: Direction
    amount: int
    description: str


class ReverseTransaction(Command, frozen=True, kw_only=True):
    """Reverse one credit, adjustment or fee in full. `references` holds the transaction."""

    former_names = ("CorrectBooking",)
    reference_kinds = (Reference.TRANSACTION,)
    audit = AuditedAction("activity", "corrected", fields=("description",))
    needs_identifiers = False

    activity_id: UUID
    description: str
