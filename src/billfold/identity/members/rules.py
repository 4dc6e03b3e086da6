"""Rules of a team: invitations, roles, and the last administrator. Pure."""

from collections.abc import Callable, Collection
from datetime import timedelta

import msgspec

from billfold.identity.members.types import InviteMember, Member
from billfold.identity.users.rules import PERMISSIONS, check_email, check_name, check_phone_number
from billfold.identity.users.types import Role, UserRole
from billfold.platform.errors import FieldError, InvalidInput, Refused
from billfold.platform.text.plain_text import is_name

INVITATION_LIFETIME = timedelta(days=7)
ROLES: tuple[UserRole, ...] = ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")
"""The roles of users; SERVICE is that of service users."""
PERSONAL_SCOPES = frozenset({"openid", "profile", "email", "phone"})
"""Scopes about a user: service users cannot have them."""
_SCOPE_OF_PERMISSION = {"transfers.approve": "transfers.write", "counterparties.write": "transfers.write"}
"""Permissions that are no scopes, and the scope by which a token carries them."""


def check_invited(requested: InviteMember) -> InviteMember:
    """Return the invitation with normalized address, names and phone number.

    Raises InvalidInput with every mistake, each at its field.
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
    """Return a name that is mailed to its person. Raises InvalidInput for what is none."""
    name = check_name(name, field)
    if not is_name(name):
        raise InvalidInput.at(field, msg="must be a name: letters, spaces, hyphens, apostrophes and points")
    return name


def permissions_of(role: Role, scopes: Collection[str] | None = None) -> frozenset[str]:
    """Return what a member, or a token of theirs with these scopes, may do: what role and scopes both include.

    None carries everything: a user on a page, without a token.
    """
    return frozenset(
        each for each in PERMISSIONS[role] if scopes is None or _SCOPE_OF_PERMISSION.get(each, each) in scopes
    )


def check_grant(giver: Collection[str], gift: Collection[str]) -> None:
    """Refuse to give a member more than the giver may do: permissions of both, as `permissions_of` returns them.

    What a user is shown of themselves is no gift. Raises Refused `forbidden`.
    """
    if "team.write" not in giver:
        raise Refused("forbidden", "Only an administrator can change the team.")
    excess = sorted(set(gift) - PERSONAL_SCOPES - set(giver))
    if excess:
        raise Refused("forbidden", f"You cannot grant more than you may do here yourself: {' '.join(excess)}.")


def check_not_last_administrator(member: Member, others: int) -> None:
    """Refuse to let the last administrator go. `others` counts those who are active beside them."""
    if member.role == "ADMIN" and member.status == "ACTIVE" and not others:
        raise Refused("last-administrator", "This is the only active administrator of the team.")
