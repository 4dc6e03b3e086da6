"""An on-us transfer as it is answered: what was asked for, and what became of it."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

import msgspec

from billfold.domain.transfers import TransferRow
from billfold.interfaces.http.shapes.amounts import Amount, usd
from billfold.interfaces.http.shapes.pocket import Fee


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


def render_transfer(
    transfer_id: UUID, status: str, reason: str | None, amount: int, request: str
) -> OnUsTransfer:
    """A transfer from its parts; `request` is the JSON text it was asked for with."""
    asked = msgspec.json.decode(request)
    asked.pop("amount", None)
    asked.pop("amount_usdc", None)
    asked.pop("transfer_id", None)
    if asked["type"] == "INTERNAL_REALLOCATION" and not asked.get("transfer_type"):
        asked["transfer_type"] = "BANK_TRANSFER"
    return OnUsTransfer(
        id=transfer_id,
        status=status,
        reason=reason,
        transfer=msgspec.convert({**asked, "amount": None}, AskedTransfer)
        if not amount
        else msgspec.structs.replace(
            msgspec.convert({**asked, "amount": None}, AskedTransfer), amount=usd(amount)
        ),
        fees=[],
    )


def render_transfer_row(row: TransferRow) -> OnUsTransfer:
    """A transfer as stored."""
    return render_transfer(row.transfer_id, row.status, row.reason, row.amount, row.request)
