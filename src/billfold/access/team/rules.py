"""Rules of a team: invitations, roles, and the last administrator. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from billfold.access.oauth.rules.scopes import SCOPES
from billfold.access.users.rules import PERMISSIONS, check_email, check_name, check_phone_number
from billfold.access.users.types import Role, UserRole
from billfold.platform.errors import FieldError, InvalidInput, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from billfold.access.team.types import InviteMember, Member

INVITATION_LIFETIME = timedelta(days=7)
ROLES: tuple[UserRole, ...] = ("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")
"""The roles of users; SERVICE is that of service users."""


def check_invited(requested: InviteMember) -> InviteMember:
    """Return the invitation with normalized address, names and phone number.

    Raises InvalidInput with every mistake, each at its field.
    """
    mistakes: list[FieldError] = []

    def checked(field: str, check: Callable[[], str]) -> str:
        try:
            return check()
        except InvalidInput as error:
            mistakes.extend(error.errors)
            return field

    found = msgspec.structs.replace(
        requested,
        first_name=checked("first_name", lambda: check_name(requested.first_name, "first_name")),
        last_name=checked("last_name", lambda: check_name(requested.last_name, "last_name")),
        email=checked("email", lambda: check_email(requested.email)),
        phone_number=None
        if requested.phone_number is None
        else checked("phone_number", lambda: check_phone_number(requested.phone_number or "")),
    )
    if mistakes:
        raise InvalidInput(mistakes)
    return found


def check_grantable(granter_scopes: Collection[str] | None, requested: Collection[str]) -> None:
    """Refuse to give a member more than its giver, a client with these scopes, may do itself.

    None is a user: only an administrator gets here, and they may do everything. What everybody in
    a team may do is no gift. Raises Refused `forbidden`.
    """
    if granter_scopes is None:
        return
    excess = (set(requested) & SCOPES.keys()) - PERMISSIONS["VIEWER"] - set(granter_scopes)
    if excess:
        named = " ".join(scope for scope in SCOPES if scope in excess)
        raise Refused("forbidden", f"A service user cannot grant more than its own scopes: {named}.")


def check_not_last_administrator(member: Member, others: int) -> None:
    """Refuse to let the last administrator go. `others` counts those who are active beside them."""
    if member.role == "ADMIN" and member.status == "ACTIVE" and not others:
        raise Refused("last-administrator", "This is the only active administrator of the team.")


def permissions_of(role: Role, scopes: Collection[str] | None) -> list[str]:
    """Return what a member may do, in the words of scopes; a client what it was made with."""
    return sorted(PERMISSIONS[role] if scopes is None else scopes)
