"""Customers as returned by both APIs."""

from datetime import date
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import msgspec

from billfold.accounts.addresses import Address
from billfold.accounts.notes.types import ShownNote
from billfold.ledger.customers import CustomerRow, CustomerStatus
from billfold.platform.errors import InvalidInput

Phone = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(\+[1-9][0-9]{1,14}|1?[2-9][0-9]{9})\Z",
        description="a phone number like +12125550100; ten digits without + are a US number",
    ),
]
Email = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+\Z", max_length=254, description="an address like treasury@acme.example"
    ),
]
ClosureReason = Literal["SUSPICIOUS_ACTIVITY", "USER_INSTIGATED", "PARTNER_INITIATED_CLOSURE", "INACTIVITY"]
NamePart = Annotated[str, msgspec.Meta(min_length=1, max_length=50)]
_NATIONAL_DIGITS = 10


class Name(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The name of a natural person."""

    first_name: NamePart
    middle_name: NamePart | None = None
    last_name: NamePart

    @property
    def written(self) -> str:
        """The name in one line."""
        return " ".join(part for part in (self.first_name, self.middle_name, self.last_name) if part)


class TrustedContact(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The person to contact if the customer cannot be reached."""

    first_name: Annotated[str, msgspec.Meta(max_length=50)] | None = None
    last_name: Annotated[str, msgspec.Meta(max_length=50)] | None = None
    email: Email | None = None
    phone_number: Phone | None = None
    address: Address | None = None


class Customer(ShownNote, kw_only=True):
    """A customer. Fields that onboarding has not filled in are null.

    `name` is an object for an INDIVIDUAL and a text for a BUSINESS; the former has a `date_of_birth`, the
    latter an `identification_number`.
    """

    id: UUID
    role: Literal["customer", "partner"]
    """`partner` for the partner's own account, from which it funds its customers."""
    type: Literal["INDIVIDUAL", "BUSINESS"]
    account_status: CustomerStatus
    name: Name | str
    email: str | None
    phone_number: str | None
    address: Address | None
    trusted_contact: TrustedContact | None
    date_of_birth: date | None
    identification_number: dict[str, Any] | None
    agreement_version: str | None
    """The latest version of the agreements that it accepted."""
    closure_reason: ClosureReason | None
    """The reason for closing; null while it is not closed."""
    closure_description: str | None
    object_type: Literal["Customer"] = "Customer"


class _Profile(msgspec.Struct, kw_only=True):
    name: Name | None = None
    date_of_birth: date | None = None
    email: str | None = None
    phone_number: str | None = None
    address: Address | None = None
    trusted_contact: TrustedContact | None = None
    identification_number: dict[str, Any] | None = None
    closure_description: str | None = None


def to_e164(phone: str) -> str:
    """Return a phone number as E.164; without a + it is a US number."""
    if phone.startswith("+"):
        return phone
    return f"+1{phone[-_NATIONAL_DIGITS:]}"


def parse_person_name(written: str) -> Name:
    """Return a person's name from one line: first word, last word, and those in between.

    Raises InvalidInput at `body.name` for one word, and for a word of more than 50 characters.
    """
    try:
        return msgspec.convert(msgspec.to_builtins(_split_name(written)), Name)
    except msgspec.ValidationError:
        raise InvalidInput.at(
            "body", "name", msg="of an individual has a first and a last name of 1 to 50 characters"
        ) from None


def _split_name(written: str) -> Name:
    """Return a name from one line without checks; a single word is a last name."""
    *first, last = written.split() or [""]
    middle = " ".join(first[1:]) or None
    return Name(first_name=first[0] if first else "", middle_name=middle, last_name=last)


def render_customer(row: CustomerRow) -> Customer:
    """Return a customer for display; its profile must be decrypted."""
    profile = msgspec.json.decode(row.profile, type=_Profile)
    reason = cast("ClosureReason | None", row.closure_reason)
    fields = msgspec.structs.asdict(profile) | {"name": _name_of(row, profile)}
    return Customer(
        id=row.customer_id,
        role="partner" if row.role == "partner" else "customer",
        type="INDIVIDUAL" if row.type == "INDIVIDUAL" else "BUSINESS",
        account_status=row.account_status,
        agreement_version=row.agreement_version,
        closure_reason=reason,
        **fields,
    )


def _name_of(row: CustomerRow, profile: _Profile) -> Name | str:
    if row.type == "BUSINESS":
        return row.name
    return profile.name or _split_name(row.name)
