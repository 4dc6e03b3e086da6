"""Schemas of authorization requests and transfer requests."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.addresses import Address, address_of
from billfold.accounts.counterparties.names import NameMatch, mask_name, match_payee
from billfold.accounts.counterparties.store import open_order
from billfold.accounts.counterparties.types import format_name
from billfold.accounts.notes.schemas import ChangedNote, NewNote
from billfold.accounts.notes.types import ShownNote
from billfold.approvals.rule_schemas import render_rule
from billfold.approvals.store.reviews import ReviewState
from billfold.approvals.transfer_orders import AmountType, OrderedTransfer, content_of
from billfold.approvals.types import (
    AuthorizationRequestRow,
    Reviewer,
    ReviewRow,
    Rule,
    Schedule,
    SeriesState,
    StoredRequest,
    TransferRequest,
    Verdict,
)
from billfold.data_keys.keys import DataKey, PartyField
from billfold.http.schemas import Amount, usd
from billfold.identity.users.rules import Role
from billfold.ledger.customers import CustomerRow
from billfold.payments.wires.schemas import WireFee

Reviewers = Annotated[list[UUID], msgspec.Meta(max_length=50)]


class CreateTransferRequest(NewNote, forbid_unknown_fields=True, kw_only=True):
    """The transfer, and its reviewers, all who may approve if empty; `must_be_approved` even if no rule asks for it.

    With a `schedule` it is a series: approved once, it makes the transfer on each of its days.
    """

    transfer: OrderedTransfer
    reviewers: Reviewers
    schedule: Schedule | None = None
    must_be_approved: bool = False


class ChangeTransferRequest(ChangedNote, forbid_unknown_fields=True, kw_only=True):
    """New content: the whole `transfer` with the same id and type, other `reviewers` or `schedule`; or a note."""

    transfer: OrderedTransfer | None = None
    reviewers: Reviewers | None = None
    schedule: Schedule | None = None


def without_note(given: NewNote) -> ChangedNote:
    """Return the change that takes a note away again, as far as it was given."""
    return ChangedNote(
        external_id=UNSET if given.external_id is UNSET else None,
        metadata=UNSET if given.metadata is UNSET else {},
    )


class DecideTransferRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The decision of a reviewer. With `content_hash` or `version` it applies to that content only.

    An approval requires one of them once the request has been changed.
    """

    status: Literal["APPROVED", "DENIED"]
    comment: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    content_hash: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")] | None = None
    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None

    @property
    def verdict(self) -> Verdict:
        """The decision about the content that the reviewer has read."""
        content_hash = bytes.fromhex(self.content_hash) if self.content_hash else None
        return Verdict(self.status, self.comment, content_hash, self.version)


class DualAuthUser(msgspec.Struct, kw_only=True):
    """A requester or reviewer. A service user has no `user_id` and no `email`."""

    member_id: UUID
    user_id: UUID | None
    first_name: str
    last_name: str
    email: str | None
    role: Role


class DualAuthUsers(msgspec.Struct, kw_only=True):
    """The members who may be named as reviewers."""

    items: list[DualAuthUser]
    object_type: Literal["List"] = "List"


class Review(msgspec.Struct, kw_only=True):
    """A review. It is void when the reviewer's membership or the content has changed."""

    reviewer: DualAuthUser
    decision: Literal["APPROVED", "DENIED"]
    comment: str | None
    time_created: datetime
    is_void: bool


class RegisteredOwner(msgspec.Struct, kw_only=True):
    """The registered owner of the account to be paid, as known to this bank now, and the name match."""

    name: str
    address: Address | None
    name_match: NameMatch


class RequestedTransfer(msgspec.Struct, kw_only=True):
    """The requested transfer and its execution. `id` is also that of the transfer or wire."""

    id: UUID
    type: Literal["ON_US", "WIRE", "USDC"]
    origin_pocket_id: UUID
    amount: Amount
    """For a full withdrawal, the value of the Pocket at the time of the request, and later the amount paid. For
    `ALL_ABOVE` and `TOP_UP_TO` first their maximum."""
    amount_type: AmountType
    keep: Amount | UnsetType = UNSET
    """What `ALL_ABOVE` leaves in the Pocket."""
    target: Amount | UnsetType = UNSET
    """What the receiving Pocket of `TOP_UP_TO` can pay afterwards."""
    details: dict[str, Any] | UnsetType = UNSET
    counterparty_id: UUID | UnsetType = UNSET
    counterparty_name: str | UnsetType = UNSET
    registered_owner: RegisteredOwner | UnsetType = UNSET
    """Present if the account to be paid is at this bank."""
    description: str | None = None
    wire_instructions: str | UnsetType | None = UNSET
    end_to_end_identification: str | None = None
    execution_status: Literal["NOT_STARTED", "PROCESSING", "COMPLETED", "REJECTED"]
    reason: str | None
    fees: list[WireFee]
    transaction_ids: list[UUID]


class ShownSchedule(msgspec.Struct, kw_only=True):
    """The schedule of a series. `next_run_at` is null before it is approved, while it is paused, and at its end."""

    start_on: date
    rule: str | None
    on_closed_day: Literal["BEFORE", "AFTER", "SKIP"]
    state: SeriesState
    next_run_at: datetime | None


class ShownTransferRequest(ShownNote, kw_only=True):
    """A transfer request. Approvals are bound to `content_hash`, and void when it changes.

    `version` counts its contents. `blocked_reason` says why nobody can approve it any more, null while someone can. A
    series has a `schedule`; each of its runs is a request with its `series_id` and, as `run_on`, the day of the rule,
    and each row of a batch one with its `batch_id`. `policy_rule` is the rule of the policy in force then that decided.
    """

    id: UUID
    status: Literal["PENDING", "APPROVED", "DENIED", "CANCELLED", "EXPIRED"]
    transfer: RequestedTransfer
    requested_by: DualAuthUser
    reviewers: list[DualAuthUser]
    reviews: list[Review]
    required_approvals: int
    approval_rule_id: UUID | None
    blocked_reason: str | None
    version: int
    content_hash: str
    time_created: datetime
    updated_at: datetime
    expires_at: datetime
    schedule: ShownSchedule | None
    series_id: UUID | None
    run_on: date | None
    batch_id: UUID | None
    policy_version: int | None
    policy_rule: str | None
    object_type: Literal["TransferRequest"] = "TransferRequest"


class RequestDetails(NamedTuple):
    """The rows read with requests: members, reviews, the transactions they caused, and the owners of their payees.

    The key is that of the customer who owns the requests.
    """

    state: ReviewState
    moved: Mapping[UUID, Sequence[UUID]]
    owners: Mapping[UUID, CustomerRow]
    data_key: DataKey | None


def render_person(user: Reviewer) -> DualAuthUser:
    """Return a member for display in requests."""
    return msgspec.convert(user, DualAuthUser, from_attributes=True)


def render_review(review: ReviewRow, users: Mapping[UUID, Reviewer]) -> Review:
    """Return a review for display."""
    return Review(
        reviewer=render_person(users[review.member_id]),
        decision=review.decision,
        comment=review.comment,
        time_created=review.created_at,
        is_void=not review.holds,
    )


def render_shared(row: StoredRequest, state: ReviewState) -> dict[str, Any]:
    """Return the fields common to requests of both kinds."""
    return {
        "id": row.request_id,
        "status": row.status,
        "requested_by": render_person(state.users[row.member_id]),
        "reviews": [render_review(each, state.users) for each in state.reviews[row.request_id]],
        "required_approvals": row.terms.required,
        "blocked_reason": state.blockers.get(row.request_id),
        "version": row.version or 1,
        "content_hash": row.content_hash.hex(),
        "time_created": row.created_at,
        "updated_at": row.updated_at,
        "expires_at": row.expires_at,
    }


def render_request(row: TransferRequest, details: RequestDetails) -> ShownTransferRequest:
    """Return a transfer request for display."""
    return ShownTransferRequest(
        transfer=_transfer_of(row, details),
        reviewers=[render_person(details.state.users[each]) for each in row.reviewers],
        approval_rule_id=row.terms.rule_id,
        schedule=_schedule_of(row),
        series_id=row.series_id,
        run_on=row.run_on,
        batch_id=row.batch_id,
        policy_version=row.policy_version,
        policy_rule=row.policy_rule,
        **render_shared(row, details.state),
    )


def _schedule_of(row: TransferRequest) -> ShownSchedule | None:
    schedule = content_of(row).schedule
    if schedule is UNSET or row.series_state is None:
        return None
    shown = msgspec.structs.asdict(schedule) | {"state": row.series_state, "next_run_at": row.next_run_at}
    return msgspec.convert(shown, ShownSchedule)


def _transfer_of(row: TransferRequest, details: RequestDetails) -> RequestedTransfer:
    content = content_of(row)
    order = msgspec.to_builtins(content.transfer)
    kept = ("details", "counterparty_id", "description", "wire_instructions", "end_to_end_identification")
    is_open = content.requested_cents is None
    fields = {name: order[name] for name in kept if name in order}
    for name, cents in (("keep", content.keep_cents), ("target", content.target_cents)):
        if cents is not None:
            fields[name] = msgspec.to_builtins(usd(cents))
    if content.instructions is not None:
        fields["wire_instructions"] = PartyField.TEXT.open(details.data_key, content.instructions)
    if content.payee is not None:
        fields["counterparty_name"] = format_name(content.payee["counterparty_name"])
    if content.payee is not None and (owner := details.owners.get(row.request_id)) is not None:
        fields["registered_owner"] = RegisteredOwner(
            name=owner.name,
            address=address_of(owner),
            name_match=match_payee(content.payee["counterparty_name"], owner.name),
        )
    return msgspec.convert(
        {
            **fields,
            "id": row.request_id,
            "type": row.type,
            "origin_pocket_id": row.pocket_id,
            "amount": msgspec.to_builtins(usd(row.paid if is_open and row.paid else row.amount)),
            "amount_type": content.amount_type,
            "execution_status": row.execution,
            "reason": row.reason,
            "fees": [{"amount": msgspec.to_builtins(usd(row.fee))}] if row.fee else [],
            "transaction_ids": list(details.moved[row.request_id]),
        },
        RequestedTransfer,
    )


class DecideAuthorization(DecideTransferRequest, kw_only=True):
    """The decision of a second member. With `content_hash` or `version` it counts for that content only."""


class AuthorizationRequest(msgspec.Struct, kw_only=True):
    """A sensitive change, applied after another person has confirmed it (`applied_at`).

    `refused` is the code with which applying it was refused. `blocked_reason` says why no member of the team can
    approve it any more, null while someone can; the operator of the bank still can.
    """

    id: UUID
    action: str
    resource_type: str
    resource_id: UUID | None
    change: dict[str, Any]
    status: Literal["PENDING", "APPROVED", "DENIED", "EXPIRED"]
    requested_by: DualAuthUser
    reviews: list[Review]
    required_approvals: int
    blocked_reason: str | None
    version: int
    content_hash: str
    applied_at: datetime | None
    refused: str | None
    time_created: datetime
    updated_at: datetime
    expires_at: datetime
    object_type: Literal["AuthorizationRequest"] = "AuthorizationRequest"


def render_change(row: AuthorizationRequestRow, state: ReviewState, data_key: DataKey | None) -> AuthorizationRequest:
    """Return a sensitive change for display; a rule in the format of rules. The key is the customer's."""
    change = msgspec.json.decode(row.content)["change"]
    if "rule" in change:
        change = {"rule": msgspec.to_builtins(render_rule(msgspec.convert(change["rule"], Rule)))}
    change.pop("scopes", None)
    if "counterparty" in change:
        change["counterparty"] = shown_counterparty(open_order(data_key, change["counterparty"]))
    return AuthorizationRequest(
        action=row.action,
        resource_type=row.resource_type,
        resource_id=row.resource_id,
        change=change,
        applied_at=row.applied_at,
        refused=row.refused,
        **render_shared(row, state),
    )


def shown_counterparty(added: dict[str, Any]) -> dict[str, Any]:
    """Return a counterparty to be added; the account owner is shown only if the given name matches."""
    owner = added.get("holder")
    if owner is None:
        return added
    outcome = match_payee(added["counterparty_name"], owner)
    if outcome == NameMatch.NO_MATCH:
        added |= {"holder": mask_name(owner), "holder_address": None}
    return added | {"name_match": outcome}
