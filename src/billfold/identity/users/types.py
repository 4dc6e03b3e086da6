"""Users, what they are members of, and where they are signed in. Instants are wall time."""

from datetime import datetime
from enum import StrEnum
from typing import Literal
from uuid import UUID

import msgspec

from billfold.platform.errors import Refused

UserRole = Literal["ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER"]
Role = Literal[UserRole, "SERVICE"]
"""The role of a user, or that of service users."""
MemberStatus = Literal["PENDING", "ACTIVE", "DEACTIVATED"]
AuthMethod = Literal["pwd", "otp", "hwk"]
"""An authentication method, as RFC 8176 names it."""
LinkPurpose = Literal["welcome", "reset"]


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user who can sign in. Knows no password: `Factors` says what they have."""

    user_id: UUID
    email: str
    email_verified_at: datetime | None
    first_name: str
    last_name: str
    phone_number: str | None
    phone_verified_at: datetime | None
    time_zone: str
    created_at: datetime
    last_login_at: datetime | None

    @property
    def name(self) -> str:
        """The full name."""
        return f"{self.first_name} {self.last_name}"


class Organization(StrEnum):
    """What a team works for, by the role of its customer: a company, a partner, or the bank itself."""

    COMPANY = "customer"
    PARTNER = "partner"
    BANK = "house"

    def require_company(self) -> None:
        """Refuse the bank and partners where a company has to be: nobody moves their money in person or by consent.

        Raises `forbidden`.
        """
        if self is not Organization.COMPANY:
            raise Refused("forbidden", "Applications act for companies only: not for the bank itself, nor a partner.")


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The membership of a user in a customer's team. `partner_slug` is that of a partner's own team."""

    member_id: UUID
    customer_id: UUID
    customer_name: str
    role: Role
    status: MemberStatus
    organization: Organization = Organization.COMPANY
    partner_slug: str | None = None

    @property
    def is_of_bank(self) -> bool:
        """Tell whether the team is the bank's: its members are operators."""
        return self.organization is Organization.BANK

    @property
    def is_of_company(self) -> bool:
        """Tell whether the team is a company's: its members, and applications, use the Customer API."""
        return self.organization is Organization.COMPANY

    @property
    def path(self) -> str:
        """Where its pages are."""
        if self.is_of_bank:
            return "/bank"
        return f"/companies/{self.customer_id}" if self.partner_slug is None else f"/partners/{self.partner_slug}"


class Factors(msgspec.Struct, frozen=True, kw_only=True):
    """The authentication factors of a user."""

    password_changed_at: datetime | None
    authenticator_since: datetime | None
    passkeys: int

    @property
    def has_second_factor(self) -> bool:
        """Return whether there is anything beside a password."""
        return self.authenticator_since is not None or self.passkeys > 0


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One browser in which a user is signed in.

    `authenticated_at` is the `auth_time` of what is issued from it. Until it is `complete` a second factor is
    missing, and it opens nothing.
    """

    session_id: UUID
    user: User
    auth_methods: tuple[AuthMethod, ...]
    complete: bool
    authenticated_at: datetime
    started_at: datetime
    last_seen_at: datetime
    ends_at: datetime
    address: str
    device: str


class Passkey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that a device or a password manager keeps for a user."""

    passkey_id: UUID
    credential_id: bytes
    user_id: UUID
    public_key: bytes
    sign_count: int
    name: str
    created_at: datetime
    used_at: datetime | None


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """With which factor a person confirmed one decision; of a passkey its answer to a challenge made with the `nonce`.

    Bytes as base64url: the credential, its public key (COSE), and what WebAuthn says it signed. Of a code the `step`
    of time that it was good for, which no other decision of the person has.
    """

    method: AuthMethod
    step: int = 0
    nonce: str = ""
    credential_id: str = ""
    public_key: str = ""
    authenticator_data: str = ""
    client_data: str = ""
    signature: str = ""


class ClientInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a client, and its browser in words."""

    address: str
    device: str
