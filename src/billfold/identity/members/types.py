"""Members of a team, and invitations into it. `created_at` and the end of an invitation are on the
bank's clock, sign-ins on the wall clock.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.identity.users.types import Role, UserRole

Status = Literal["ACTIVE", "PENDING", "DEACTIVATED", "EXPIRED"]
STATUSES: tuple[Status, ...] = ("ACTIVE", "PENDING", "DEACTIVATED", "EXPIRED")
"""In the order in which a team is shown. PENDING and EXPIRED are invitations."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a team, or an invitation into it: a user, or a service user.

    A user has a `user_id` once they have accepted. A service user has a `client_id`
    and, in place of a role's permissions, the scopes it was made with.
    """

    member_id: UUID
    user_id: UUID | None
    client_id: str | None
    first_name: str
    last_name: str
    email: str | None
    phone_number: str | None
    role: Role
    status: Status
    scopes: tuple[str, ...] | None
    created_at: datetime
    last_login_at: datetime | None
    invite_expires_at: datetime | None

    @property
    def is_service_user(self) -> bool:
        """Return whether it is a service user."""
        return self.client_id is not None

    @property
    def name(self) -> str:
        """The full name."""
        return f"{self.first_name} {self.last_name}".strip()


class MemberState(msgspec.Struct, frozen=True):
    """What a change of a member starts from."""

    role: Role
    status: Status


PublicKey = Annotated[
    str,
    msgspec.Meta(
        max_length=10_000,
        description="A public key as PEM: EC P-256 (ES256), RSA of 2048 bits or more (PS256), or Ed25519 (EdDSA).",
    ),
]


class CreateProgram(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A service user and its scopes, which cannot be changed. `profile` says whether its tokens need DPoP.

    `fapi2` clients prove a key with every request; for `documented` ones bearer tokens will do.
    """

    name: str
    description: str = ""
    scopes: list[str]
    public_key: PublicKey
    profile: Literal["fapi2", "documented"] = "fapi2"


class InviteMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whom to invite by mail, and as what. A `phone_number` is international: +12025550123."""

    first_name: str
    last_name: str
    email: str
    phone_number: str | None = None
    role: UserRole


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """The invitation of a mailed link."""

    member_id: UUID
    customer_id: UUID
    customer_name: str
    first_name: str
    last_name: str
    email: str
    phone_number: str | None
    role: Role
