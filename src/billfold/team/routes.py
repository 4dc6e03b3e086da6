"""The team of the customer: its members, and invitations into it."""

from functools import partial
from typing import Literal
from uuid import UUID

import msgspec

from billfold.approvals.routes.authorization_requests import respond_pending
from billfold.approvals.types import AuthorizationRequestRow
from billfold.http.operations import MAY_NEED_APPROVAL, delete, get, post, put, with_scope
from billfold.http.raw_request import in_body
from billfold.http.responses import HttpResponse
from billfold.identity.members import rules as team_types
from billfold.identity.members import store as team_store
from billfold.identity.members.rules import InviteMember
from billfold.identity.users.rules import PERMISSIONS, UserRole
from billfold.ledger.bank import Bank
from billfold.oauth.authentication import CustomerCaller
from billfold.platform.errors import InvalidInput
from billfold.team import invitations as team_invitations
from billfold.team import members as team_members
from billfold.team.administrator import calling_administrator
from billfold.team.schemas import Team, TeamMember, render_member, render_team

READS, WRITES = with_scope("team.read", "team"), with_scope("team.write", "team")


class EditTeamMember(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another role, or another status, or both."""

    role: UserRole | None = None
    status: Literal["ACTIVE", "DEACTIVATED"] | None = None


@get("/api/v1/team/", READS, tag="team")
async def get_team(member: CustomerCaller, bank: Bank) -> Team:
    """Read the team: everybody in it, in groups by status.

    Phone numbers and last sign-ins are for those whose role changes the team, and one's own.
    """
    found = await team_store.list_team(bank.pool, bank.vault, member.customer_id, now=member.now)
    return render_team(member.customer_id, found, private_of=partial(_may_see_private, member))


@get("/api/v1/team/{member_id}/", READS, tag="team")
async def get_team_member(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamMember:
    """Read one member."""
    found = await team_store.get_member(bank.pool, bank.vault, member.customer_id, member_id=member_id, now=member.now)
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

    A new role holds from the next request on. With deactivation their sessions, tokens and what they
    granted to applications end at once, and do not come back. What gives a member more may wait
    for a second user, where a rule of the team requires it.
    """
    if data.role is None and data.status is None:
        raise InvalidInput.at("body", msg="names nothing to change")
    by = await calling_administrator(member, bank)
    with in_body():
        changed = await team_members.change_member(by, member_id, role=data.role, status=data.status)
    return await _respond(bank, changed)


@delete(
    "/api/v1/team/{member_id}/", WRITES, status=200, refuses=("last-administrator", "member-not-active"), tag="team"
)
async def deactivate_team_member(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamMember:
    """Deactivate a member, a user or a service user: sessions, tokens and keys end."""
    by = await calling_administrator(member, bank)
    return render_member(await team_members.deactivate_member(by, member_id))


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

    The invitation may wait for a second user, where a rule of the team requires it.
    """
    by = await calling_administrator(member, bank)
    with in_body():
        invited = await team_invitations.invite(by, data)
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
    """Mail the invitation once more: a new link for seven days, beside those before until one is used.

    One that has expired may wait for a second user, where a rule of the team requires it.
    """
    by = await calling_administrator(member, bank)
    return await _respond(bank, await team_invitations.resend_invitation(by, member_id))


@delete("/api/v1/team/{member_id}/invite/", WRITES, status=200, refuses=("invite-not-pending",), tag="team")
async def cancel_invite(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamMember:
    """Cancel an invitation. The answer is who was invited; afterwards they are not found."""
    by = await calling_administrator(member, bank)
    return render_member(await team_invitations.cancel_invitation(by, member_id))


async def _respond(bank: Bank, changed: team_types.Member | AuthorizationRequestRow) -> TeamMember | HttpResponse:
    """Return a member as they are now, or the request that waits for a second user."""
    if isinstance(changed, AuthorizationRequestRow):
        return await respond_pending(bank, changed)
    return render_member(changed)


def _may_see_private(member: CustomerCaller, other: team_types.Member) -> bool:
    """Return whether the caller may see the private fields of a member."""
    own = member.access.member_id == other.member_id
    return own or "team.write" in PERMISSIONS[member.access.role]
