"""The document of a policy, the facts that its conditions read, and what it decides. Money is in cents."""

from datetime import datetime
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from billfold.identity.users.rules import UserRole

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*\Z")]
Condition = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Text = Annotated[str, msgspec.Meta(max_length=200)]
Whole = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
Weekday = Literal["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
DOCUMENT_MAX: Final = 32_768
"""The characters of a document as canonical JSON."""


class Refuse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="decision", tag="REFUSE"):
    """The payment is refused, and nobody can approve it. `reason` is for the person who requests it."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S")]


class Require(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="decision",
    tag="REQUIRE",
):
    """The payment needs this many approvals, each by a member with one of these roles; empty: any who may approve."""

    approvals: Annotated[int, msgspec.Meta(ge=1, le=5)]
    roles: Annotated[list[UserRole], msgspec.Meta(max_length=5)] = msgspec.field(default_factory=list)


class PolicyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule: the decision about payments of which a condition in CEL holds."""

    name: Name
    when: Condition
    then: Refuse | Require


class PayeeFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A payee: a counterparty, or another Pocket of the customer (`kind` is `pocket`).

    `kind` of a counterparty is its type. `country` is that of its bank as two letters, empty for a wallet. `age_days`
    are the days since it was added, in New York.
    """

    id: Text = ""
    name: Text = ""
    kind: Text = ""
    country: Text = ""
    age_days: Whole = 0


class PocketFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The Pocket that pays, with the `external_id` of its note."""

    id: Text = ""
    name: Text = ""
    external_id: Annotated[str, msgspec.Meta(max_length=255)] = ""


class InitiatorFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The member who requests the payment: a `PERSON` or a `SERVICE_USER`, with the roles of now."""

    id: Text = ""
    kind: Literal["PERSON", "SERVICE_USER"] = "PERSON"
    roles: Annotated[list[Text], msgspec.Meta(max_length=10)] = msgspec.field(default_factory=list)


class LocalTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A time in New York, as its clocks show it."""

    date: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")] = "2026-01-05"
    weekday: Weekday = "MON"
    hour: Annotated[int, msgspec.Meta(ge=0, le=23)] = 12
    minute: Annotated[int, msgspec.Meta(ge=0, le=59)] = 0


class PaymentFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A payment. Its `direction` is `INTERNAL` between Pockets of the customer; `at` is when it is decided."""

    amount_cents: Whole = 0
    rail: Literal["ON_US", "WIRE", "USDC"] = "WIRE"
    direction: Literal["OUT", "INTERNAL"] = "OUT"
    payee: PayeeFacts = PayeeFacts()
    pocket: PocketFacts = PocketFacts()
    at: LocalTime = LocalTime()
    initiator: InitiatorFacts = InitiatorFacts()


class Used(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The amounts paid to others, or requested, on the business day and in its month before this payment."""

    today_cents: Whole = 0
    today_count: Whole = 0
    month_cents: Whole = 0
    month_count: Whole = 0
    payee_today_cents: Whole = 0
    payee_month_cents: Whole = 0


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The decision that a test expects, and, if given, by which rule and with how many approvals."""

    decision: Literal["ALLOW", "REFUSE", "REQUIRE"]
    rule: Name | None = None
    approvals: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None


class PolicyTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A payment, of which facts may be omitted, and the decision expected about it."""

    name: Name
    payment: PaymentFacts = PaymentFacts()
    used: Used = Used()
    expect: Expected


class PolicyDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of a policy, and its tests; at most 32,768 characters as JSON."""

    rules: Annotated[list[PolicyRule], msgspec.Meta(max_length=50)]
    tests: Annotated[list[PolicyTest], msgspec.Meta(max_length=100)] = msgspec.field(default_factory=list)


class PolicyDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about one payment: refused for a reason, or allowed with this many approvals by these roles.

    `rule` is the name of the rule that decided; None if no condition holds.
    """

    rule: str | None = None
    reason: str | None = None
    approvals: int = 0
    roles: tuple[UserRole, ...] = ()

    @property
    def decision(self) -> Literal["ALLOW", "REFUSE", "REQUIRE"]:
        """The decision in a word."""
        if self.reason is not None:
            return "REFUSE"
        return "REQUIRE" if self.approvals else "ALLOW"


class PolicyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version as stored: its document as canonical JSON, and the authorization request that approved it."""

    version: int
    document: str
    content_hash: bytes
    request_id: UUID
    member_id: UUID
    created_at: datetime
