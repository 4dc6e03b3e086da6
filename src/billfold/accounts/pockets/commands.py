"""Commands about a Pocket."""

from typing import Any
from uuid import UUID

from typing_extensions import override

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.ledger.types import PocketStatus


class OpenPocket(Command, frozen=True, kw_only=True):
    """Open a pocket with its first bank portal. Strategies as weeks; None keeps matured cash."""

    audit = AuditedAction("pocket", "created", fields=("name", "deposit_weeks", "reinvestment_weeks"))

    partner_id: UUID
    name: str
    deposit_weeks: int
    reinvestment_weeks: int | None
    type: str = "STANDARD"
    pocket_id: UUID | None = None
    real_time_yield: bool = False


class UpdatePocket(Command, frozen=True, kw_only=True):
    """Change what is given; `keep_reinvestment` distinguishes None from not given.

    Closing references the Pocket, and with it the payments in process.
    """

    reference_kinds = (Reference.OPEN_ACH_ENTRIES, Reference.OPEN_WIRES, Reference.OPEN_WITHDRAWALS)
    audit = AuditedAction(
        "pocket",
        lambda c: "closed" if c.close_for else "updated",
        fields=("name", "deposit_weeks", "reinvestment_weeks", "close_for"),
    )

    pocket_id: UUID
    name: str | None = None
    deposit_weeks: int | None = None
    reinvestment_weeks: int | None = None
    keep_reinvestment: bool = True
    close_for: str | None = None

    @override
    def audited_fields(self) -> dict[str, Any]:
        """Return what is given; reinvestment that ends is shown as None."""
        shown = super().audited_fields()
        if not self.keep_reinvestment:
            shown["reinvestment_weeks"] = self.reinvestment_weeks
        return shown


class SetPocketState(Command, frozen=True, kw_only=True):
    """What only the operator does: freeze, unfreeze, switch `real_time_yield`."""

    audit = AuditedAction("pocket", "updated", fields=("status", "real_time_yield"))

    pocket_id: UUID
    status: PocketStatus | None = None
    real_time_yield: bool | None = None
