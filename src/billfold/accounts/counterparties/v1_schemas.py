"""Counterparties as v1 shows them, and accounts that are linked at their own bank."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.counterparties.types import CounterpartyRow, format_name
from billfold.http.schemas import one_of

_V1_VERIFICATION_TYPES = {
    "micro_deposits": "MICRO_DEPOSITS",
    "linking_provider": "LINKING_PROVIDER",
    "pre_verified": "PRE_VERIFIED",
    "name_match": "PRE_VERIFIED",
    "incoming_wire": "INCOMING_WIRE",
    "supporting_documents": "SUPPORTING_DOCUMENTS",
}
_V1_STATUSES, _V1_USABLE = {"PENDING": "IN_PROGRESS", "UNLINKED": "FAILED"}, "VERIFIED"
V1_COUNTERPARTY_TYPES = ("ach", "wire")
"""The types v1 knows."""


class MicroDeposits(msgspec.Struct, kw_only=True):
    """How often other amounts were named."""

    verification_failure_count: int


class LinkingProviderState(msgspec.Struct, kw_only=True):
    """What the linking provider says of an account."""

    mask: str
    verification_status: str


class OlderAccount(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The account of a counterparty, v1."""

    time_created: datetime
    verification_type: Annotated[str, one_of(*dict.fromkeys(_V1_VERIFICATION_TYPES.values()))]
    status: Annotated[str, one_of(*_V1_STATUSES.values(), _V1_USABLE)]
    account_number: str | None
    routing_number: str | None
    name_on_account: str
    account_type: Annotated[str, one_of("CHECKING", "SAVINGS")] | None
    institution_name: str | None
    linking_provider: LinkingProviderState | None = None
    micro_deposits: MicroDeposits | None = None


class OlderCounterparty(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A counterparty, v1: its account stands under the name of its type."""

    id: UUID
    type: Annotated[str, one_of(*map(str.upper, V1_COUNTERPARTY_TYPES))]
    ach: OlderAccount | None = None
    wire: OlderAccount | None = None


class OlderCounterparties(msgspec.Struct, kw_only=True):
    """All counterparties of a customer that v1 can show, newest first."""

    count: int
    counterparties: list[OlderCounterparty]
    object_type: Literal["List"] = "List"


class LinkTokenRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where the provider's pages shall lead back to: an address, or an Android package."""

    client_name: Annotated[str, msgspec.Meta(min_length=1, max_length=30)]
    redirect_uri: (
        Annotated[str, msgspec.Meta(pattern=r"^https://[^\s]+\Z", max_length=2000, description="an https address")]
        | None
    ) = None
    android_package_name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None
    counterparty_id: UUID | None = None


class LinkTokenAnswer(msgspec.Struct, kw_only=True):
    """What opens the provider's pages, and until when."""

    link_token: str
    expiration: datetime


class ChosenAccount(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An account that was chosen on the provider's pages."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    name: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    mask: Annotated[str, msgspec.Meta(max_length=4)] | None = None


class LinkRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the provider's pages returned."""

    public_token: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    accounts: Annotated[list[ChosenAccount], msgspec.Meta(min_length=1, max_length=20)]
    institution_id: Annotated[str, msgspec.Meta(max_length=100)] | None = None


class LinkedCounterparties(msgspec.Struct, kw_only=True):
    """The counterparties that were made of the chosen accounts, in their order."""

    items: list[Counterparty]


def has_v1_form(row: CounterpartyRow) -> bool:
    """Tell whether v1 can show a counterparty: its type, and how it was verified."""
    verification = msgspec.json.decode(row.verification)
    return row.type in V1_COUNTERPARTY_TYPES and verification["type"] in _V1_VERIFICATION_TYPES


def render_v1_counterparty(row: CounterpartyRow) -> OlderCounterparty:
    """A counterparty from its row, v1."""
    details, stored = msgspec.json.decode(row.details), msgspec.json.decode(row.verification)
    account = OlderAccount(
        time_created=row.created_at,
        verification_type=_V1_VERIFICATION_TYPES[stored["type"]],
        status=_status(row.status),
        account_number=row.account_number,
        routing_number=details.get("routing_number"),
        name_on_account=format_name(msgspec.json.decode(row.counterparty_name)),
        account_type=details.get("account_type"),
        institution_name=details.get("institution_name"),
        linking_provider=_render_link(stored.get("account")),
        micro_deposits=(
            MicroDeposits(verification_failure_count=stored["failures"]) if stored["type"] == "micro_deposits" else None
        ),
    )
    if row.type == "ach":
        return OlderCounterparty(id=row.counterparty_id, type="ACH", ach=account)
    return OlderCounterparty(id=row.counterparty_id, type="WIRE", wire=account)


def _render_link(account: Mapping[str, Any] | None) -> LinkingProviderState | None:
    if account is None:
        return None
    return LinkingProviderState(mask=account["mask"], verification_status=account["status"])


def _status(status: str) -> str:
    return _V1_STATUSES.get(status, _V1_USABLE)
