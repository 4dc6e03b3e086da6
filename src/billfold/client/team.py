"""Typed calls about the team: members, invitations, service users and their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from billfold.access.team.schemas import ProgramKey, ProgramKeys, Team, TeamMember, TeamProgram
from billfold.client.responses import ApiClient

_TEAM = "/api/v1/team/"
_SERVICE_USERS = f"{_TEAM}service-users/"


class TeamApi(ApiClient):
    """The part of the Customer API that is about the team."""

    def team(self) -> Team:
        """Return everybody in the team, in groups by status."""
        return self._get(_TEAM, Team)

    def team_member(self, member_id: UUID) -> TeamMember:
        """Return one member."""
        return self._get(f"{_TEAM}{member_id}/", TeamMember)

    def change_member(self, member_id: UUID, *, key: str | None = None, **changes: str) -> TeamMember:
        """Give a member another `role` or `status`."""
        return self._change("PUT", f"{_TEAM}{member_id}/", changes, kind=TeamMember, key=key)

    def deactivate_member(self, member_id: UUID, *, key: str | None = None) -> TeamMember:
        """Deactivate a member, a person or a service user."""
        return self._change("DELETE", f"{_TEAM}{member_id}/", {}, kind=TeamMember, key=key)

    def invite_member(
        self,
        first_name: str,
        last_name: str,
        email: str,
        role: str,
        *,
        phone_number: str | None = None,
        key: str | None = None,
    ) -> TeamMember:
        """Invite somebody by mail."""
        body = {
            "first_name": first_name,
            "last_name": last_name,
            "email": email,
            "role": role,
            "phone_number": phone_number,
        }
        return self._change("POST", f"{_TEAM}invite/", body, kind=TeamMember, key=key)

    def resend_invite(self, member_id: UUID, *, key: str | None = None) -> TeamMember:
        """Mail an invitation once more, with a new link."""
        return self._change("POST", f"{_TEAM}{member_id}/invite/", {}, kind=TeamMember, key=key)

    def cancel_invite(self, member_id: UUID, *, key: str | None = None) -> TeamMember:
        """Take an invitation back."""
        return self._change("DELETE", f"{_TEAM}{member_id}/invite/", {}, kind=TeamMember, key=key)

    def create_service_user(
        self, name: str, scopes: Sequence[str], public_key: str, *, key: str | None = None, **fields: str
    ) -> TeamProgram:
        """Make a service user with its first public key, PEM; `description`, `profile`."""
        body: dict[str, Any] = {"name": name, "scopes": list(scopes), "public_key": public_key}
        return self._change("POST", _SERVICE_USERS, body | fields, kind=TeamProgram, key=key)

    def program(self, member_id: UUID) -> TeamProgram:
        """Return a service user."""
        return self._get(f"{_SERVICE_USERS}{member_id}/", TeamProgram)

    def service_user_keys(self, member_id: UUID) -> list[ProgramKey]:
        """Return the public keys of a service user, newest first."""
        return self._get(f"{_SERVICE_USERS}{member_id}/keys/", ProgramKeys).items

    def add_service_user_key(
        self, member_id: UUID, public_key: str, *, rotate: bool = False, key: str | None = None
    ) -> ProgramKey:
        """Register another public key, beside the others or in their place."""
        path = f"{_SERVICE_USERS}{member_id}/keys/{'rotate/' if rotate else ''}"
        return self._change("POST", path, {"public_key": public_key}, kind=ProgramKey, key=key)

    def revoke_service_user_key(self, member_id: UUID, key_id: str, *, key: str | None = None) -> None:
        """Take a public key out of use; the service user's tokens end."""
        path = f"{_SERVICE_USERS}{member_id}/keys/{key_id}/"
        self._change("DELETE", path, {}, kind=type(None), key=key)
