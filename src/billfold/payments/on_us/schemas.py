"""An on-us transfer as it is answered: what was asked for, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

import msgspec

from billfold.accounts.pockets.schemas import Fee
from billfold.http.schemas.amounts import Amount, usd
from billfold.payments.on_us.types import TransferOrder, TransferRow


class AskedTransfer(msgspec.Struct, kw_only=True):
    """The request as it was taken, its amount as an Amount; null while it is not known."""

    type: str
    description: str | None = None
    end_to_end_identification: str | None = None
    from_account: dict[str, Any]
    to_account: dict[str, Any] | None = None
    counterparty_id: UUID | None = None
    source: str | None = None
    target: str | None = None
    transfer_type: str | None = None
    async_mode: bool = False
    amount: Amount | None


class OnUsTransfer(msgspec.Struct, kw_only=True):
    """A transfer: PENDING, COMPLETED, or REJECTED with its reason."""

    id: UUID
    status: str
    reason: str | None
    transfer: AskedTransfer
    fees: list[Fee]
    object_type: Literal["OnUsTransfer"] = "OnUsTransfer"


def render_transfer(row: TransferRow) -> OnUsTransfer:
    """A transfer as stored."""
    outcome = {"status": row.status, "reason": row.reason, "amount": row.amount}
    pockets = (row.from_pocket_id, row.to_pocket_id)
    return render_ordered(row.order, outcome, transfer_id=row.transfer_id, kind=row.type, pockets=pockets)


def render_ordered(
    order: TransferOrder, outcome: Mapping[str, Any], *, transfer_id: UUID, kind: str, pockets: tuple[UUID, UUID | None]
) -> OnUsTransfer:
    """A transfer from what was ordered and what the command came to."""
    origin, destination = pockets
    to = None if order.counterparty_id else destination
    within = kind == "INTERNAL_REALLOCATION"
    return OnUsTransfer(
        id=transfer_id,
        status=outcome["status"],
        reason=outcome["reason"],
        transfer=AskedTransfer(
            type=kind,
            description=order.description,
            end_to_end_identification=order.end_to_end_identification,
            from_account=_account(origin),
            to_account=None if to is None else _account(to),
            counterparty_id=order.counterparty_id,
            source=order.source,
            target=order.target,
            transfer_type=(order.transfer_type or "BANK_TRANSFER") if within else None,
            async_mode=order.async_mode,
            amount=usd(outcome["amount"]) if outcome["amount"] else None,
        ),
        fees=[],
    )


def _account(pocket_id: UUID) -> dict[str, Any]:
    return {"id": str(pocket_id), "type": "SERVICE_ACCOUNT"}
