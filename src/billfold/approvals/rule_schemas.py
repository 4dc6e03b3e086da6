"""Schemas of approval rules."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.approvals.types import Rule, TransferType
from billfold.http.schemas import NOT_BLANK
from billfold.identity.users.rules import Action
from billfold.payments.on_us.schemas import MOST_CENTS

RuleName = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=NOT_BLANK)]
Approver = Literal["ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER"]
Threshold = Annotated[int, msgspec.Meta(ge=0, le=MOST_CENTS)]
Cap = Annotated[int, msgspec.Meta(ge=1, le=1_000 * MOST_CENTS)]
Count = Annotated[int, msgspec.Meta(ge=0, le=5)]
Actions = Annotated[list[Action], msgspec.Meta(min_length=1, max_length=3)]
Kinds = Annotated[list[TransferType], msgspec.Meta(max_length=3)]
Roles = Annotated[list[Approver], msgspec.Meta(max_length=5)]
Ids = Annotated[list[UUID], msgspec.Meta(max_length=50)]


class CreateApprovalRule(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A rule. Empty lists impose no limit: every type, every member who may approve.

    `min_amount_usdc` and `daily_cap_usdc` are cents. `ordered`: the n-th approval comes from the
    n-th of `approver_ids`, or of `approver_roles`.
    """

    name: RuleName
    actions: Actions = msgspec.field(default_factory=lambda: ["TRANSFER"])
    transfer_types: Kinds = msgspec.field(default_factory=list)
    min_amount_usdc: Threshold | None = None
    daily_cap_usdc: Cap | None = None
    required_approvals: Count
    approver_roles: Roles = msgspec.field(default_factory=list)
    approver_ids: Ids = msgspec.field(default_factory=list)
    ordered: bool = False
    enabled: bool = True


class UpdateApprovalRule(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields to change; omitted fields stay as they are. Null removes an amount."""

    name: RuleName | UnsetType = UNSET
    actions: Actions | UnsetType = UNSET
    transfer_types: Kinds | UnsetType = UNSET
    min_amount_usdc: Threshold | UnsetType | None = UNSET
    daily_cap_usdc: Cap | UnsetType | None = UNSET
    required_approvals: Count | UnsetType = UNSET
    approver_roles: Roles | UnsetType = UNSET
    approver_ids: Ids | UnsetType = UNSET
    ordered: bool | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class ApprovalRule(msgspec.Struct, kw_only=True):
    """A rule, enabled or disabled."""

    id: UUID
    name: str
    actions: list[Action]
    transfer_types: list[TransferType]
    min_amount_usdc: int | None
    daily_cap_usdc: int | None
    required_approvals: int
    approver_roles: list[str]
    approver_ids: list[UUID]
    ordered: bool
    enabled: bool
    version: int
    time_created: datetime
    updated_at: datetime
    object_type: Literal["ApprovalRule"] = "ApprovalRule"


class ApprovalRules(msgspec.Struct, kw_only=True):
    """All rules, oldest first."""

    items: list[ApprovalRule]
    object_type: Literal["List"] = "List"


_SHOWN_NAMES = {
    "rule_id": "id",
    "min_amount": "min_amount_usdc",
    "daily_cap": "daily_cap_usdc",
    "created_at": "time_created",
}
"""Field of a rule -> its name in the API, if different."""


def rule_fields(data: CreateApprovalRule | UpdateApprovalRule) -> dict[str, Any]:
    """Return the rule's fields from a request body."""
    given = {name: value for name in data.__struct_fields__ if (value := getattr(data, name)) is not UNSET}
    for name, shown in _SHOWN_NAMES.items():
        if shown in given:
            given[name] = given.pop(shown) or None
    unique_fields = {"actions", "transfer_types"}
    return {
        name: tuple(dict.fromkeys(value) if name in unique_fields else value) if isinstance(value, list) else value
        for name, value in given.items()
    }


def render_rule(rule: Rule) -> ApprovalRule:
    """Return a rule for display."""
    fields = msgspec.structs.asdict(rule)
    for name, shown in _SHOWN_NAMES.items():
        fields[shown] = fields.pop(name)
    return msgspec.convert(fields, ApprovalRule)
