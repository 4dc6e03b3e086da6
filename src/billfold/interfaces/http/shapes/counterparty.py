"""A counterparty as both APIs show it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.domain.counterparties import CounterpartyRow
from billfold.kit.settings import Settings

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=50)]


class IndividualName(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="individual"
):
    """A person."""

    first_name: Name
    last_name: Name


class BusinessName(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="business"
):
    """A company."""

    business_name: Annotated[str, msgspec.Meta(min_length=1, max_length=250)]


CounterpartyName = IndividualName | BusinessName


class Counterparty(msgspec.Struct, kw_only=True):
    """Whom a customer pays."""

    id: UUID
    time_created: datetime
    status: str
    verification: dict[str, Any]
    type: str
    counterparty_name: str
    institution_name: str | None
    account_number: str | None
    display_name: str | None
    object_type: Literal["Counterparty"] = "Counterparty"


def plain_name(name: CounterpartyName) -> str:
    """A counterparty's name as one text."""
    if isinstance(name, BusinessName):
        return name.business_name
    return f"{name.first_name} {name.last_name}"


def render_counterparty(row: CounterpartyRow, settings: Settings) -> Counterparty:
    """A counterparty from its row."""
    name = msgspec.json.decode(row.counterparty_name, type=CounterpartyName)
    return Counterparty(
        id=row.counterparty_id,
        time_created=row.created_at,
        status=row.status,
        verification=msgspec.json.decode(row.verification),
        type=row.type,
        counterparty_name=plain_name(name),
        institution_name=settings.bank_name if row.type == "on_us" else None,
        account_number=row.account_number,
        display_name=row.display_name,
    )
