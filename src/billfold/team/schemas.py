"""A team: its members by status, its service users and their keys."""

from collections.abc import Callable
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.http.schemas import BankTime, WallTime, one_of
from billfold.identity.members.rules import STATUSES, Member, Status, permissions_of
from billfold.identity.users.rules import Role
from billfold.oauth.types import ClientKey
from billfold.team.service_users import ServiceUser

PrivateOf = Callable[[Member], bool]
"""Decides whether a reader may see the private fields of a member."""


class TeamMember(msgspec.Struct, kw_only=True):
    """A member of a team, or someone invited into it. A service user has no `user_id` and no `email`."""

    member_id: UUID
    user_id: UUID | UnsetType = UNSET
    first_name: str
    last_name: str
    email: str | None
    phone_number: str | None
    role: Role
    status: Status
    permissions: list[str]
    is_service_user: bool
    time_created: BankTime
    last_login_at: WallTime | UnsetType = UNSET
    invite_expires_at: BankTime | UnsetType = UNSET
    object_type: Literal["TeamMember"] = "TeamMember"


class MemberGroup(msgspec.Struct, kw_only=True):
    """The members of one status, by name, service users last."""

    status: Status
    members: list[TeamMember]


class Team(msgspec.Struct, kw_only=True):
    """A customer's team: one group for each status, empty ones included."""

    team_id: UUID
    customer_id: UUID
    groups: list[MemberGroup]
    object_type: Literal["Team"] = "Team"


class ProgramKey(msgspec.Struct, kw_only=True):
    """A public key in use. `expires_at` is set once another key has replaced it.

    `registered_by` is the member who registered it, null for the operator of the bank.
    """

    key_id: str
    algorithm: str
    time_created: WallTime
    expires_at: WallTime | None
    registered_by: UUID | None
    object_type: Literal["ServiceUserKey"] = "ServiceUserKey"


class ProgramKeys(msgspec.Struct, kw_only=True):
    """The keys of a service user, newest first."""

    items: list[ProgramKey]
    object_type: Literal["List"] = "List"


class TeamProgram(msgspec.Struct, kw_only=True):
    """A service user. It gets tokens as `client_id`, authenticated with the key `key_id`."""

    member_id: UUID
    client_id: str
    name: str
    description: str
    scopes: list[str]
    key_id: str | None
    profile: Annotated[str, one_of("fapi2", "documented")]
    status: Status
    time_created: BankTime
    object_type: Literal["ServiceUser"] = "ServiceUser"


def render_member(member: Member, *, private: bool = True) -> TeamMember:
    """Return a member for display; without `private`, phone number and last sign-in are omitted."""
    return TeamMember(
        member_id=member.member_id,
        user_id=member.user_id or UNSET,
        first_name=member.first_name,
        last_name=member.last_name,
        email=member.email,
        phone_number=member.phone_number if private else None,
        role=member.role,
        status=member.status,
        permissions=sorted(permissions_of(member.role, member.scopes)),
        is_service_user=member.is_service_user,
        time_created=member.created_at,
        last_login_at=(member.last_login_at if private else None) or UNSET,
        invite_expires_at=member.invite_expires_at or UNSET,
    )


def render_team(customer_id: UUID, members: list[Member], *, private_of: PrivateOf) -> Team:
    """Return a team grouped by status. A customer has one team, so they share their id."""
    return Team(
        team_id=customer_id,
        customer_id=customer_id,
        groups=[
            MemberGroup(
                status=status,
                members=[render_member(each, private=private_of(each)) for each in members if each.status == status],
            )
            for status in STATUSES
        ],
    )


def render_key(key: ClientKey) -> ProgramKey:
    """Return a key for display."""
    return ProgramKey(
        key_id=key.key_id,
        algorithm=key.algorithm,
        time_created=key.created_at,
        expires_at=key.expires_at,
        registered_by=key.registered_by,
    )


def render_service_user(found: ServiceUser) -> TeamProgram:
    """Return a service user for display; `key_id` is that of its newest key."""
    member, client = found.member, found.client
    return TeamProgram(
        member_id=member.member_id,
        client_id=client.client_id,
        name=client.name,
        description=client.description,
        scopes=list(client.scopes),
        key_id=found.keys[0].key_id if found.keys else None,
        profile=client.profile,
        status=member.status,
        time_created=client.created_at,
    )
