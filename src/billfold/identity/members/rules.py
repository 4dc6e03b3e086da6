"""Rules of a team: invitations, roles, and the last administrator. Pure."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.identity.users.rules import PERMISSIONS, Role, UserRole, check_email, check_name, check_phone_number
from billfold.platform.errors import FieldError, InvalidInput, Refused
from billfold.platform.text import is_name

Status = Literal["ACTIVE", "PENDING", "DEACTIVATED", "EXPIRED"]
STATUSES: tuple[Status, ...] = ("ACTIVE", "PENDING", "DEACTIVATED", "EXPIRED")
"""In the order in which a team is listed. PENDING and EXPIRED are invitations."""


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
    """The state of a member that a change starts from."""

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
    """A member to invite by e-mail, and their role. A `phone_number` is international: +12025550123."""

    first_name: str
    last_name: str
    email: str
    phone_number: str | None = None
    role: UserRole


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """The invitation behind an e-mailed link."""

    member_id: UUID
    customer_id: UUID
    customer_name: str
    first_name: str
    last_name: str
    email: str
    phone_number: str | None
    role: Role


INVITATION_LIFETIME = timedelta(days=7)
ROLES: tuple[UserRole, ...] = ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")
"""The roles of users; SERVICE is that of service users."""
PERSONAL_SCOPES = frozenset({"openid", "profile", "email", "phone"})
"""Scopes about a user: service users cannot have them."""
_SCOPE_OF_PERMISSION = {"transfers.approve": "transfers.write", "counterparties.write": "transfers.write"}
"""Permissions that are not scopes, and the scope by which a token carries them."""


def check_invited(requested: InviteMember) -> InviteMember:
    """Return the invitation with normalized address, names and phone number.

    Raises InvalidInput with every error, each at its field.
    """
    mistakes: list[FieldError] = []

    def checked(check: Callable[[], str]) -> str:
        try:
            return check()
        except InvalidInput as error:
            mistakes.extend(error.errors)
            return ""

    found = msgspec.structs.replace(
        requested,
        first_name=checked(lambda: _check_written(requested.first_name, "first_name")),
        last_name=checked(lambda: _check_written(requested.last_name, "last_name")),
        email=checked(lambda: check_email(requested.email)),
        phone_number=None
        if requested.phone_number is None
        else checked(lambda: check_phone_number(requested.phone_number or "")),
    )
    if mistakes:
        raise InvalidInput(mistakes)
    return found


def _check_written(name: str, field: str) -> str:
    """Return a valid name, which is e-mailed to its person. Raises InvalidInput."""
    name = check_name(name, field)
    if not is_name(name):
        raise InvalidInput.at(field, msg="must be a name: letters, spaces, hyphens, apostrophes and periods")
    return name


def permissions_of(role: Role, scopes: Collection[str] | None = None) -> frozenset[str]:
    """Return the permissions of a member, or of their token with these scopes: those that role and scopes both include.

    None includes everything: a user on a page, without a token.
    """
    return frozenset(
        each for each in PERMISSIONS[role] if scopes is None or _SCOPE_OF_PERMISSION.get(each, each) in scopes
    )


def check_grant(giver: Collection[str], gift: Collection[str]) -> None:
    """Refuse to give a member more than the giver may do: permissions of both, as `permissions_of` returns them.

    Being shown one's own data is not such a permission. Raises Refused `forbidden`.
    """
    if "team.write" not in giver:
        raise Refused("forbidden", "Only an administrator can change the team.")
    excess = sorted(set(gift) - PERSONAL_SCOPES - set(giver))
    if excess:
        raise Refused("forbidden", f"You cannot grant more than you may do here yourself: {' '.join(excess)}.")


def check_not_last_administrator(member: Member, others: int) -> None:
    """Refuse to remove the last administrator. `others` counts the other active ones."""
    if member.role == "ADMIN" and member.status == "ACTIVE" and not others:
        raise Refused("last-administrator", "This is the only active administrator of the team.")
