"""Operations on the team, its service users, and the current user."""

from functools import partial
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.approvals.routes import respond_pending
from billfold.approvals.types import AuthorizationRequestRow
from billfold.http.operations import MAY_NEED_APPROVAL, delete, get, post, put, with_scope
from billfold.http.raw_request import in_body
from billfold.http.responses import HttpResponse
from billfold.http.schemas import one_of
from billfold.identity.members import rules
from billfold.identity.members import store as member_store
from billfold.identity.members.rules import CreateProgram, InviteMember, PublicKey
from billfold.identity.users import store as user_store
from billfold.identity.users.rules import PERMISSIONS, UserRole
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.errors import InvalidInput, Refused
from billfold.team import invitations, members, schemas, service_users
from billfold.team.administrator import calling_administrator
from billfold.team.schemas import TeamMember, render_member


class User(msgspec.Struct, kw_only=True):
    """A user with OpenID Connect field names; mail and phone require their scopes."""

    sub: UUID
    name: str
    given_name: str
    family_name: str
    email: str | UnsetType = UNSET
    email_verified: bool | UnsetType = UNSET
    phone_number: str | UnsetType = UNSET
    phone_number_verified: bool | UnsetType = UNSET
    member_id: UUID
    customer_id: UUID
    partner_id: UUID | None


class Membership(msgspec.Struct, kw_only=True):
    """The membership of a user in a customer's team."""

    member_id: UUID
    customer_id: UUID
    customer_name: str
    role: Annotated[str, one_of("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")]
    status: Annotated[str, one_of("ACTIVE", "DEACTIVATED")]
    object_type: Literal["Membership"] = "Membership"


class Memberships(msgspec.Struct, kw_only=True):
    """All memberships of a user."""

    items: list[Membership]
    object_type: Literal["List"] = "List"


@get("/api/v1/user/", with_scope("profile", "user"), tag="user")
async def get_user(member: CustomerCaller, bank: Bank) -> User:
    """Get the current user."""
    access = member.access
    oidc_claims = await user_store.user_claims(
        bank.pool, bank.vault, _user_id(member), customer_id=access.customer_id, scopes=access.scopes
    )
    return msgspec.convert(oidc_claims, User)


@get("/api/v1/user/memberships/", with_scope("profile", "user"), tag="user")
async def list_memberships(member: CustomerCaller, bank: Bank) -> Memberships:
    """List the customers whose teams the user belongs to."""
    found = await user_store.list_user_memberships(bank.pool, _user_id(member))
    customers = [each for each in found if each.is_of_company]
    return Memberships(items=[msgspec.convert(each, Membership, from_attributes=True) for each in customers])


def _user_id(member: CustomerCaller) -> UUID:
    if member.access.user_id is None:
        raise Refused("forbidden", "The client acts on its own behalf: there is no user.")
    return member.access.user_id


READS, WRITES = with_scope("team.read", "team"), with_scope("team.write", "team")


class EditTeamMember(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A new role or status, or both."""

    role: UserRole | None = None
    status: Literal["ACTIVE", "DEACTIVATED"] | None = None


@get("/api/v1/team/", READS, tag="team", as_of=True)
async def get_team(member: CustomerCaller, bank: Bank) -> schemas.Team:
    """Get the team, with all members grouped by status.

    Phone numbers and last sign-ins are included for administrators, and for the caller.
    """
    found = await member_store.list_team(bank.pool, bank.vault, member.customer_id, now=member.now, as_of=member.as_of)
    return schemas.render_team(member.customer_id, found, private_of=partial(_may_see_private, member))


@get("/api/v1/team/{member_id}/", READS, tag="team", as_of=True)
async def get_team_member(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamMember:
    """Read one member."""
    found = await member_store.get_member(
        bank.pool, bank.vault, member.customer_id, member_id=member_id, now=member.now, as_of=member.as_of
    )
    return render_member(found, private=_may_see_private(member, found))


@put(
    "/api/v1/team/{member_id}/",
    WRITES,
    documented=MAY_NEED_APPROVAL,
    refuses=("last-administrator", "member-not-active", "member-shut-out"),
    tag="team",
)
async def update_team_member(
    member: CustomerCaller, bank: Bank, member_id: UUID, data: EditTeamMember
) -> TeamMember | HttpResponse:
    """Change a member's role, or deactivate or reactivate them.

    A new role takes effect with the next request. Deactivation ends the member's sessions, tokens and application
    grants at once and for good. A change that grants permissions may need the approval of a second user, if a rule
    of the team requires it.
    """
    if data.role is None and data.status is None:
        raise InvalidInput.at("body", msg="names nothing to change")
    by = await calling_administrator(member, bank)
    with in_body():
        changed = await members.change_member(by, member_id, role=data.role, status=data.status)
    return await _respond(bank, changed)


@delete(
    "/api/v1/team/{member_id}/", WRITES, status=200, refuses=("last-administrator", "member-not-active"), tag="team"
)
async def deactivate_team_member(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamMember:
    """Deactivate a member, a user or a service user: sessions, tokens and keys end."""
    by = await calling_administrator(member, bank)
    return render_member(await members.deactivate_member(by, member_id))


@post(
    "/api/v1/team/invite/",
    WRITES,
    documented=MAY_NEED_APPROVAL,
    refuses=("member-already-invited", "invite-limit-reached"),
    tag="team",
)
async def invite_team_member(member: CustomerCaller, bank: Bank, data: InviteMember) -> TeamMember | HttpResponse:
    """Invite a team member.

    The link in the e-mail works once, for seven days.

    The invitation may need the approval of a second user, if a rule of the team requires it.
    """
    by = await calling_administrator(member, bank)
    with in_body():
        invited = await invitations.invite(by, data)
    return await _respond(bank, invited)


@post(
    "/api/v1/team/{member_id}/invite/",
    WRITES,
    status=200,
    documented=MAY_NEED_APPROVAL,
    refuses=("invite-not-pending", "invite-limit-reached"),
    tag="team",
)
async def resend_invite(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamMember | HttpResponse:
    """Resend the invitation: a new link, valid for seven days; earlier links work until one is used.

    An expired invitation may need the approval of a second user, if a rule of the team requires it.
    """
    by = await calling_administrator(member, bank)
    return await _respond(bank, await invitations.resend_invitation(by, member_id))


@delete("/api/v1/team/{member_id}/invite/", WRITES, status=200, refuses=("invite-not-pending",), tag="team")
async def cancel_invite(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamMember:
    """Cancel an invitation. Returns the invited member, who is not found afterwards."""
    by = await calling_administrator(member, bank)
    return render_member(await invitations.cancel_invitation(by, member_id))


async def _respond(bank: Bank, changed: rules.Member | AuthorizationRequestRow) -> TeamMember | HttpResponse:
    """Return a member as they are now, or the request that awaits approval."""
    if isinstance(changed, AuthorizationRequestRow):
        return await respond_pending(bank, changed)
    return render_member(changed)


def _may_see_private(member: CustomerCaller, other: rules.Member) -> bool:
    """Return whether the caller may see the private fields of a member."""
    own = member.access.member_id == other.member_id
    return own or "team.write" in PERMISSIONS[member.access.role]


_SERVICE_USER = "/api/v1/team/service-users/{member_id}/"


class AddKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another public key."""

    public_key: PublicKey


@post("/api/v1/team/service-users/", WRITES, name="create_service_user", documented=MAY_NEED_APPROVAL, tag="team")
async def create_service_user(
    member: CustomerCaller, bank: Bank, data: CreateProgram
) -> schemas.TeamProgram | HttpResponse:
    """Create a service user. It gets tokens with client credentials, authenticated by its key.

    It can do at most what its creator can do here, and may need the approval of a second user, if a rule of the
    team requires it.
    """
    by = await calling_administrator(member, bank)
    with in_body():
        created = await service_users.create_service_user(by, data)
    if isinstance(created, AuthorizationRequestRow):
        return await respond_pending(bank, created)
    return schemas.render_service_user(created)


@get(_SERVICE_USER, READS, name="get_service_user", tag="team")
async def get_service_user(member: CustomerCaller, bank: Bank, member_id: UUID) -> schemas.TeamProgram:
    """Read a service user."""
    found = await service_users.get_service_user(
        bank.pool, bank.vault, member.customer_id, member_id=member_id, now=member.now, wall=member.wall
    )
    return schemas.render_service_user(found)


@get(f"{_SERVICE_USER}keys/", READS, name="list_service_user_keys", tag="team")
async def list_service_user_keys(member: CustomerCaller, bank: Bank, member_id: UUID) -> schemas.ProgramKeys:
    """List the public keys of a service user, newest first."""
    found = await service_users.get_service_user(
        bank.pool, bank.vault, member.customer_id, member_id=member_id, now=member.now, wall=member.wall
    )
    return schemas.ProgramKeys(items=[schemas.render_key(each) for each in found.keys])


@post(
    f"{_SERVICE_USER}keys/",
    WRITES,
    name="add_service_user_key",
    documented=MAY_NEED_APPROVAL,
    tag="team",
    refuses=("duplicate-id", "member-not-active"),
)
async def add_service_user_key(
    member: CustomerCaller, bank: Bank, member_id: UUID, data: AddKey
) -> schemas.ProgramKey | HttpResponse:
    """Register an additional public key.

    The key may need the approval of a second user, if a rule of the team requires it.
    """
    return await _add_key(member, bank, member_id, data.public_key)


@post(
    f"{_SERVICE_USER}keys/rotate/",
    WRITES,
    name="rotate_service_user_keys",
    documented=MAY_NEED_APPROVAL,
    tag="team",
    refuses=("duplicate-id", "member-not-active"),
)
async def rotate_service_user_keys(
    member: CustomerCaller, bank: Bank, member_id: UUID, data: AddKey
) -> schemas.ProgramKey | HttpResponse:
    """Register a public key that replaces all others; those are accepted for 24 more hours.

    The key may need the approval of a second user, if a rule of the team requires it.
    """
    return await _add_key(member, bank, member_id, data.public_key, replaces=True)


@delete(f"{_SERVICE_USER}keys/{{key_id}}/", WRITES, name="revoke_service_user_key", tag="team", refuses=("last-key",))
async def revoke_service_user_key(member: CustomerCaller, bank: Bank, member_id: UUID, key_id: str) -> None:
    """Revoke a key at once. Every token of the service user ends with it.

    The last key cannot be revoked: deactivate the service user instead.
    """
    await service_users.revoke_service_user_key(await calling_administrator(member, bank), member_id, key_id)


async def _add_key(
    member: CustomerCaller, bank: Bank, member_id: UUID, public_key: str, *, replaces: bool = False
) -> schemas.ProgramKey | HttpResponse:
    by = await calling_administrator(member, bank)
    with in_body():
        added = await service_users.add_service_user_key(by, member_id, public_key, replaces=replaces)
    return (
        await respond_pending(bank, added) if isinstance(added, AuthorizationRequestRow) else schemas.render_key(added)
    )
