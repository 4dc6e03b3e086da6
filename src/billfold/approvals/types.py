"""Requests, their requester, the approvals they require, and their reviews. Times are business time."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Final, Literal, NamedTuple
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.bills.rules.recurrence import OnClosedDay, Recurrence, parse_recurrence
from billfold.identity.users.rules import Action, Confirmation, Role
from billfold.ledger.types import Origin
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Pool
from billfold.platform.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The member who makes or decides a request, and the origin of the call.

    A person has a `user_id`; a service user has none. `client_id` is the application used, `scopes` those of its
    token: both are None on a page. `now` is the bank's time, `business_date` its day, `wall` wall time.
    """

    pool: Pool
    vault: Vault
    customer_id: UUID
    member_id: UUID
    user_id: UUID | None
    client_id: str
    role: Role
    scopes: frozenset[str] | None
    name: str
    origin: Origin
    now: datetime
    business_date: date
    wall: datetime
    confirmation: Confirmation | None = None


TransferType = Literal["ON_US", "WIRE", "USDC"]
Status = Literal["PENDING", "APPROVED", "DENIED", "CANCELLED", "EXPIRED"]
Decision = Literal["APPROVED", "DENIED"]
SeriesState = Literal["ACTIVE", "PAUSED", "CANCELLED", "ENDED"]
Execution = Literal["NOT_STARTED", "PROCESSING", "COMPLETED", "REJECTED"]
EXPIRE_TRANSFER_REQUEST: Final = "request.expire"
EXECUTE_TRANSFER_REQUEST: Final = "request.execute"
EXPIRE_AUTHORIZATION_REQUEST: Final = "change.expire"
APPLY_AUTHORIZATION_REQUEST: Final = "change.apply"
RUN_SERIES: Final = "request.run"
REPORT_SERIES: Final = "request.report"
REPORT_TRANSFER_REQUEST: Final = "request.changed"
REPORT_POLICY: Final = "policy.changed"
"""Kinds of scheduled jobs; the object is the request."""


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The days of a transfer: `start_on`, or those of a rule from then on, of RFC 5545, section 3.3.10.

    A day on which the Federal Reserve is closed is moved to the open day before or after it, or skipped. A transfer is
    made at 8:00 New York time.
    """

    start_on: date
    rule: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    on_closed_day: OnClosedDay = OnClosedDay.AFTER

    def recurrence(self) -> Recurrence:
        """Return the days. Raises InvalidInput at body.schedule.rule."""
        try:
            return parse_recurrence(self.rule or "FREQ=DAILY;COUNT=1", self.start_on)
        except InvalidInput as wrong:
            raise InvalidInput.at("body", "schedule", "rule", msg=wrong.errors[0].msg) from None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of approval. Empty lists do not limit the rule; amounts are in cents.

    `ordered`: the n-th approval comes from the n-th of `approver_ids`, or of `approver_roles`.
    `daily_cap` limits the sum of one business day's transfers under this rule.
    """

    rule_id: UUID
    name: str
    actions: tuple[Action, ...] = ("TRANSFER",)
    transfer_types: tuple[TransferType, ...] = ()
    min_amount: int | None = None
    daily_cap: int | None = None
    required_approvals: int
    approver_roles: tuple[Role, ...] = ()
    approver_ids: tuple[UUID, ...] = ()
    ordered: bool = False
    enabled: bool = True
    version: int = 1
    created_at: datetime
    updated_at: datetime


class ApprovalRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """The approvals that a request requires: its rule at the time of the request.

    `candidates` are the members who could approve then, in the role they had; nobody else can later. None for
    requests of earlier releases, which did not record them. `policy_version` is that of the policy in force then,
    `policy_rule` the rule of it that asked for approvals, each by a member with one of `policy_roles` if there are any.
    """

    rule_id: UUID | None = None
    rule_name: str | None = None
    required: int = 1
    roles: tuple[Role, ...] = ()
    ids: tuple[UUID, ...] = ()
    ordered: bool = False
    candidates: dict[UUID, Role] | None = None
    policy_version: int | None = None
    policy_rule: str | None = None
    policy_roles: tuple[Role, ...] = ()


DEFAULT_REQUIREMENT = ApprovalRequirement()
"""Without a rule, one approval by any other eligible person is enough."""


class ReviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """A review. It is valid (`holds`) while its reviewer's membership and the content stay unchanged."""

    member_id: UUID
    user_id: UUID
    role: Role
    decision: Decision
    comment: str | None
    created_at: datetime
    holds: bool


class StoredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as stored. `content` is the JSON text that is approved, `terms` the required approvals.

    `status` is EXPIRED as soon as `expires_at` has passed. Without `reviewers` every eligible member may review.
    `version` counts the contents, from 2 on; None is the first.
    """

    customer_id: UUID
    request_id: UUID
    content: str
    content_hash: bytes
    member_id: UUID
    user_id: UUID | None
    client_id: str
    reviewers: tuple[UUID, ...] = ()
    terms: ApprovalRequirement
    status: Status = msgspec.field(name="status_now")
    version: int | None = None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime

    @property
    def affected_member(self) -> UUID | None:
        """The member whose own role is decided: they may not review it."""
        return None

    @property
    def is_series(self) -> bool:
        """Tell whether it is carried out on the days of a schedule."""
        return False


class TransferRequest(StoredRequest, frozen=True, kw_only=True):
    """A transfer request. `asked` is the hash of the content as sent when it was created.

    `execution` and `reason` are those of the approved transfer, `paid` is the amount moved and `fee` the
    wire fee. A series has a state, the last of its days that was handled, and the time of the next; each of its runs
    has its `series_id` and the day of the rule, and each row of a batch its `batch_id`. The version of the policy and
    the rule of it are those that decided about the request, or refused its execution.
    """

    type: TransferType
    pocket_id: UUID
    counterparty_id: UUID | None
    amount: int
    asked: bytes
    execution: Execution
    reason: str | None = msgspec.field(name="reason_now")
    fee: int
    paid: int | None
    series_state: SeriesState | None = None
    handled_through: date | None = None
    next_run_at: datetime | None = None
    series_id: UUID | None = None
    run_on: date | None = None
    batch_id: UUID | None = None
    policy_version: int | None = None
    policy_rule: str | None = None

    @property
    @override
    def is_series(self) -> bool:
        """Tell whether it is carried out on the days of a schedule."""
        return self.series_state is not None


class AuthorizationRequestRow(StoredRequest, frozen=True, kw_only=True):
    """An authorization request: a sensitive change that needs a second person.

    `refused` is the code of the rule that refused the change when it was to be applied.
    """

    action: str
    resource_type: str
    resource_id: UUID | None
    applied_at: datetime | None
    refused: str | None

    @property
    @override
    def affected_member(self) -> UUID | None:
        """The member whose own role is decided: they may not review it."""
        return self.resource_id if self.resource_type == "member" else None


class Verdict(NamedTuple):
    """A decision; `content_hash` and `version` identify the content that the reviewer has read, if given."""

    decision: Decision
    comment: str | None
    content_hash: bytes | None
    version: int | None


class Reviewer(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a team; a service user has neither a user nor an e-mail address."""

    member_id: UUID
    user_id: UUID | None
    first_name: str
    last_name: str
    email: str | None
    role: Role
