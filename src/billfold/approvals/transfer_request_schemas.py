"""A transfer request as it is asked for and as it is shown: what, by whom, decided by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.pockets.schemas import Fee
from billfold.approvals.transfer_orders import OrderedTransfer, content_of
from billfold.approvals.types import Reviewer, ReviewRow, TransferRequest
from billfold.http.schemas.amounts import Amount, usd

Reviewers = Annotated[list[UUID], msgspec.Meta(max_length=50)]


class CreateTransferRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What to move, and which members decide; without any named whoever may approve does."""

    transfer: OrderedTransfer
    reviewers: Reviewers


class ChangeTransferRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another content: the whole `transfer`, under the same id and type, or other `reviewers`."""

    transfer: OrderedTransfer | None = None
    reviewers: Reviewers | None = None


class DecideTransferRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the reviewer says. With `content_hash` he says it of the content he has read."""

    status: Literal["APPROVED", "DENIED"]
    comment: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    content_hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None


class DualAuthUser(msgspec.Struct, kw_only=True):
    """Who asks or decides. A service user has no `user_id` and no `email`."""

    member_id: UUID
    user_id: UUID | None
    first_name: str
    last_name: str
    email: str | None
    role: str


class DualAuthUsers(msgspec.Struct, kw_only=True):
    """Who may be named as a reviewer."""

    items: list[DualAuthUser]
    object_type: Literal["List"] = "List"


class Review(msgspec.Struct, kw_only=True):
    """What a reviewer said. It no longer counts when `is_void`: he, or the content, has changed."""

    reviewer: DualAuthUser
    decision: Literal["APPROVED", "DENIED"]
    comment: str | None
    time_created: datetime
    is_void: bool


class RequestedTransfer(msgspec.Struct, kw_only=True):
    """What was asked for, and what became of it. `id` is also that of the transfer or wire."""

    id: UUID
    type: Literal["ON_US", "WIRE", "USDC"]
    origin_pocket_id: UUID
    amount: Amount
    details: dict[str, Any] | UnsetType = UNSET
    counterparty_id: UUID | UnsetType = UNSET
    counterparty_name: str | UnsetType = UNSET
    description: str | None = None
    wire_instructions: str | UnsetType | None = UNSET
    end_to_end_identification: str | None = None
    execution_status: Literal["NOT_STARTED", "PROCESSING", "COMPLETED", "REJECTED"]
    reason: str | None
    fees: list[Fee]
    transaction_ids: list[UUID]


class ShownTransferRequest(msgspec.Struct, kw_only=True):
    """A transfer request. Approvals are bound to `content_hash`, and void when it changes."""

    id: UUID
    status: Literal["PENDING", "APPROVED", "DENIED", "CANCELLED", "EXPIRED"]
    transfer: RequestedTransfer
    requested_by: DualAuthUser
    reviewers: list[DualAuthUser]
    reviews: list[Review]
    required_approvals: int
    approval_rule_id: UUID | None
    content_hash: str
    time_created: datetime
    updated_at: datetime
    expires_at: datetime
    object_type: Literal["TransferRequest"] = "TransferRequest"


class RequestDetails(NamedTuple):
    """What is read beside requests: who is named, what was said, what has moved."""

    people: Mapping[UUID, Reviewer]
    voices: Mapping[UUID, Sequence[ReviewRow]]
    moved: Mapping[UUID, Sequence[UUID]]


def render_person(user: Reviewer) -> DualAuthUser:
    """Return somebody as requests name him."""
    return DualAuthUser(
        member_id=user.member_id,
        user_id=user.user_id,
        first_name=user.first_name,
        last_name=user.last_name,
        email=user.email,
        role=user.role,
    )


def render_review(voice: ReviewRow, people: Mapping[UUID, Reviewer]) -> Review:
    """Return what was said."""
    return Review(
        reviewer=render_person(people[voice.member_id]),
        decision=voice.decision,
        comment=voice.comment,
        time_created=voice.created_at,
        is_void=not voice.holds,
    )


def render_request(row: TransferRequest, around: RequestDetails) -> ShownTransferRequest:
    """Return a transfer request as it is shown."""
    people = around.people
    return ShownTransferRequest(
        id=row.request_id,
        status=row.status,
        transfer=_transfer_of(row, around),
        requested_by=render_person(people[row.member_id]),
        reviewers=[render_person(people[each]) for each in row.reviewers],
        reviews=[render_review(each, people) for each in around.voices[row.request_id]],
        required_approvals=row.terms.required,
        approval_rule_id=row.terms.rule_id,
        content_hash=row.content_hash.hex(),
        time_created=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
    )


def _transfer_of(row: TransferRequest, around: RequestDetails) -> RequestedTransfer:
    content = content_of(row)
    order = msgspec.to_builtins(content.transfer)
    kept = ("details", "counterparty_id", "description", "wire_instructions", "end_to_end_identification")
    fields = {name: order[name] for name in kept if name in order}
    if content.payee is not None:
        fields["counterparty_name"] = _name_of(content.payee["counterparty_name"])
    return msgspec.convert(
        {
            **fields,
            "id": row.request_id,
            "type": row.type,
            "origin_pocket_id": row.pocket_id,
            "amount": msgspec.to_builtins(usd(row.amount)),
            "execution_status": row.execution,
            "reason": row.reason,
            "fees": [{"type": "WIRE_FEE", "amount": msgspec.to_builtins(usd(row.fee))}] if row.fee else [],
            "transaction_ids": list(around.moved[row.request_id]),
        },
        RequestedTransfer,
    )


def _name_of(name: dict[str, Any]) -> str:
    if name.get("type") == "business":
        return str(name["business_name"])
    return f"{name['first_name']} {name['last_name']}"
