"""On-us transfers as the Partner API accepts and returns them: the request and its status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.holds.schemas import Named
from billfold.accounts.notes.schemas import NewNote, PaymentFilters
from billfold.accounts.notes.types import ShownNote
from billfold.accounts.pockets.schemas import Fee
from billfold.http.parameters import Query, texts_among
from billfold.http.schemas import Amount, one_of, usd
from billfold.payments.on_us.commands import TransferOrder, TransferRow, TransferStatus
from billfold.platform.dates import iso_z
from billfold.platform.errors import InvalidInput
from billfold.treasury.rules.withdraw import NOTHING_TO_MOVE

MOST_CENTS = 999_999_999_999
"""The maximum of one transfer is that of a Fedwire payment: $9,999,999,999.99."""

TransferType = Literal[
    "PARTNER_CUSTOMER_FUNDING", "PARTNER_CUSTOMER_DEFUNDING", "INTERNAL_REALLOCATION", "PEER_TO_PEER"
]
TransferText = Annotated[str, one_of(*get_args(TransferType))]
Cents = Annotated[int, msgspec.Meta(ge=1, le=MOST_CENTS)]
Endpoint = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class TransferFilters(PaymentFilters, frozen=True, kw_only=True):
    """Filter of on-us transfers; None does not filter."""

    customer_id: Annotated[UUID | None, Query()] = None
    pocket_id: Annotated[UUID | None, Query(description="Which pays, or is paid by its own customer.")] = None
    status: Annotated[list[TransferStatus] | None, Query(name="status[]")] = None
    types: Annotated[list[str] | None, texts_among("type[]", frozenset(get_args(TransferType)))] = None


class AccountRef(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A Pocket by its id."""

    id: UUID
    type: Literal["SERVICE_ACCOUNT"] = "SERVICE_ACCOUNT"


class RequestedAmount(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="REQUESTED_AMOUNT"
):
    """A number of cents."""

    amount_usdc: Cents


class FullWithdrawal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="FULL_WITHDRAWAL"):
    """The whole balance, net of fees."""


class CreateTransfer(NewNote, forbid_unknown_fields=True, kw_only=True):
    """A transfer to make. Give exactly one of `amount` and the older `amount_usdc`."""

    type: TransferType
    from_account: AccountRef
    to_account: AccountRef | None = None
    counterparty_id: UUID | None = None
    amount: RequestedAmount | FullWithdrawal | None = None
    amount_usdc: Cents | None = None
    transfer_id: UUID | None = None
    description: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    end_to_end_identification: Annotated[str, msgspec.Meta(max_length=35)] | None = None
    source: Endpoint | None = None
    target: Endpoint | None = None
    transfer_type: Literal["BANK_TRANSFER", "SECURITY_TRANSFER"] | None = None
    async_mode: bool = False
    hold_id: Named = UNSET


class _OfAmount(Protocol):
    amount: RequestedAmount | FullWithdrawal | None
    amount_usdc: int | None


Ordered = TypeVar("Ordered", bound="_OfAmount")


def with_amount(data: Ordered) -> Ordered:
    """Return a request with its amount in `amount`, in either spelling. Raises InvalidInput unless given once."""
    if (data.amount is None) == (data.amount_usdc is None):
        raise InvalidInput.at("body", "amount", msg="exactly one of amount and amount_usdc")
    if data.amount_usdc is None:
        return data
    requested = RequestedAmount(amount_usdc=data.amount_usdc)
    # A protocol cannot require a struct.
    return msgspec.structs.replace(data, amount=requested, amount_usdc=None)  # type: ignore[type-var]


def requested_cents(amount: RequestedAmount | FullWithdrawal | None) -> int | None:
    """Return the requested cents; None: the whole balance."""
    return amount.amount_usdc if isinstance(amount, RequestedAmount) else None


class AskedTransfer(msgspec.Struct, kw_only=True):
    """The request; its amount is an Amount, null while unknown."""

    type: TransferText
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


_REASONS = ("INSUFFICIENT_FUNDS", "ACCOUNT_UNAVAILABLE", "INVALID_TRANSFER", NOTHING_TO_MOVE)


class OnUsTransfer(ShownNote, kw_only=True):
    """A transfer: PENDING, COMPLETED, or REJECTED with its reason."""

    id: UUID
    status: Annotated[str, one_of(*TransferStatus)]
    reason: Annotated[str, one_of(*_REASONS)] | None
    transfer: AskedTransfer
    fees: list[Fee]
    reverses_id: UUID | None = None
    """The transfer that it pays back, in full or in part."""
    reversed_by: tuple[UUID, ...] = ()
    """The transfers that paid it back."""
    time_created: datetime | None = None
    object_type: Literal["OnUsTransfer"] = "OnUsTransfer"


def render_transfer(row: TransferRow) -> OnUsTransfer:
    """Return a transfer for display."""
    outcome = {"status": row.status, "reason": row.reason, "amount": row.amount, "made_at": iso_z(row.created_at)}
    pockets = (row.from_pocket_id, row.to_pocket_id)
    return render_ordered(row.order, outcome, transfer_id=row.transfer_id, kind=row.type, pockets=pockets)


def render_ordered(
    order: TransferOrder, outcome: Mapping[str, Any], *, transfer_id: UUID, kind: str, pockets: tuple[UUID, UUID | None]
) -> OnUsTransfer:
    """Return a transfer for display, from its order and the outcome of its command."""
    origin, destination = pockets
    to = None if kind == "PEER_TO_PEER" else destination
    within = kind == "INTERNAL_REALLOCATION"
    return OnUsTransfer(
        id=transfer_id,
        status=outcome["status"],
        reason=outcome["reason"],
        time_created=datetime.fromisoformat(at) if (at := outcome.get("made_at")) else None,
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
        reverses_id=order.reverses,
    )


def _account(pocket_id: UUID) -> dict[str, Any]:
    return {"id": str(pocket_id), "type": "SERVICE_ACCOUNT"}
