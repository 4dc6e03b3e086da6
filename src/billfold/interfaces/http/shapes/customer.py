"""A customer as both APIs show him."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.domain.directory import CustomerRow

Line = Annotated[str, msgspec.Meta(min_length=1, max_length=250)]
Country = Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}$")]
Phone = Annotated[str, msgspec.Meta(pattern=r"^\+[1-9]\d{1,14}$")]
Email = Annotated[str, msgspec.Meta(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$", max_length=254)]


class Address(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A postal address; the country as two letters."""

    street_address: Line
    street_address2: Annotated[str, msgspec.Meta(max_length=250)] | None = None
    city: Line
    postal_code: Annotated[str, msgspec.Meta(min_length=1, max_length=50)]
    state: Annotated[str, msgspec.Meta(max_length=50)] | None = None
    country: Country


class TrustedContact(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whom to ask when the customer cannot be reached."""

    first_name: Annotated[str, msgspec.Meta(max_length=50)] | None = None
    last_name: Annotated[str, msgspec.Meta(max_length=50)] | None = None
    email: Email | None = None
    phone_number: Phone | None = None
    address: Address | None = None


class Customer(msgspec.Struct, kw_only=True):
    """A customer. What onboarding has not filled in is null."""

    id: UUID
    type: str
    account_status: str
    name: str
    email: str | None
    phone_number: str | None
    address: Address | None
    trusted_contact: TrustedContact | None
    identification_number: dict[str, Any] | None
    object_type: Literal["Customer"] = "Customer"


class _Profile(msgspec.Struct, kw_only=True):
    email: str | None = None
    phone_number: str | None = None
    address: Address | None = None
    trusted_contact: TrustedContact | None = None
    identification_number: dict[str, Any] | None = None


def render_customer(row: CustomerRow) -> Customer:
    """A customer from his row."""
    profile = msgspec.json.decode(row.profile, type=_Profile)
    return Customer(
        id=row.customer_id,
        type=row.type,
        account_status=row.account_status,
        name=row.name,
        email=profile.email,
        phone_number=profile.phone_number,
        address=profile.address,
        trusted_contact=profile.trusted_contact,
        identification_number=profile.identification_number,
    )
