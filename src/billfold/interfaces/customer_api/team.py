"""The team of the customer: its members, and invitations into it."""

from __future__ import annotations

from functools import partial
from typing import Literal
from uuid import UUID

import msgspec
from litestar import Response, delete, get, post, put
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED

from billfold.domain import team
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.administrator import administrator_of
from billfold.interfaces.customer_api.groups import TEAM
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.customer_api.waiting import MAY_WAIT, ask_first
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.bodies import in_body
from billfold.interfaces.http.marks import granted, refuses
from billfold.interfaces.http.shapes.team import (
    Role,
    Team,
    TeamMember,
    render_member,
    render_team,
)
from billfold.kit.errors import InvalidInput

READS, WRITES = granted("team.read", TEAM), granted("team.write", TEAM)


class InviteMember(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whom to invite by mail, and as what. A `phone_number` is international: +12025550123."""

    first_name: str
    last_name: str
    email: str
    phone_number: str | None = None
    role: Role


class EditTeamMember(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another role, or another status, or both."""

    role: Role | None = None
    status: Literal["ACTIVE", "DEACTIVATED"] | None = None


@get("/api/v1/team/", operation_id="get_team", opt=READS, tags=["team"])
async def get_team(member: Member, bank: Bank) -> Team:
    """Read the team: everybody in it, in groups by status.

    Phone numbers and last sign-ins are for those whose role changes the team, and one's own.
    """
    found = await team.list_team(bank.pool, member.customer_id, member.now)
    return render_team(member.customer_id, found, private_of=partial(_sees, member))


@get(
    "/api/v1/team/{member_id:str}/",
    operation_id="get_team_member",
    opt=READS | refuses("not-found"),
    tags=["team"],
)
async def get_team_member(member: Member, bank: Bank, member_id: str) -> TeamMember:
    """Read one member."""
    asked = _id(member_id)
    found = await team.get_member(bank.pool, member.customer_id, asked, member.now)
    return render_member(found, private=_sees(member, found))


@put(
    "/api/v1/team/{member_id:str}/",
    operation_id="update_team_member",
    opt=WRITES
    | refuses("not-found", "last-administrator", "member-not-active", "member-shut-out")
    | MAY_WAIT,
    tags=["team"],
)
async def update_team_member(
    member: Member, bank: Bank, member_id: str, data: EditTeamMember
) -> Response[TeamMember]:
    """Give a member another role, deactivate him, or activate him again.

    A new role holds from the next request on. With deactivation his sessions, tokens and what he
    granted to applications end at once, and do not come back. What gives a member more may wait
    for a second person, where a rule of the team says so.
    """
    asked = _id(member_id)
    if data.role is None and data.status is None:
        raise InvalidInput.at("body", msg="names nothing to change")
    by = await administrator_of(member, bank)
    found = await team.get_member(bank.pool, member.customer_id, asked, member.now)
    if data.role not in {None, found.role} or data.status == "ACTIVE" != found.status:
        waits = await ask_first(
            member, bank, "MEMBER_ROLE", "member.update", ("member", asked), role=data.role,
            status=data.status,
        )  # fmt: skip
        if waits is not None:
            return waits
    with in_body():
        changed = await team.change_member(by, asked, role=data.role, status=data.status)
    return Response(render_member(changed))


@delete(
    "/api/v1/team/{member_id:str}/",
    status_code=HTTP_200_OK,
    operation_id="deactivate_team_member",
    opt=WRITES | refuses("not-found", "last-administrator", "member-not-active"),
    tags=["team"],
)
async def deactivate_team_member(member: Member, bank: Bank, member_id: str) -> TeamMember:
    """Deactivate a member, a person or a service user; nothing of his works any longer."""
    asked = _id(member_id)
    by = await administrator_of(member, bank)
    return render_member(await team.deactivate_member(by, asked))


@post(
    "/api/v1/team/invite/",
    status_code=HTTP_201_CREATED,
    operation_id="invite_team_member",
    opt=WRITES | refuses("member-already-invited") | MAY_WAIT,
    tags=["team"],
)
async def invite_team_member(
    member: Member, bank: Bank, data: InviteMember
) -> Response[TeamMember]:
    """Invite somebody by mail. The link works once, for seven days.

    The invitation may wait for a second person, where a rule of the team says so.
    """
    wanted = team.Invited(
        first_name=data.first_name,
        last_name=data.last_name,
        email=data.email,
        phone_number=data.phone_number,
        role=data.role,
    )
    by = await administrator_of(member, bank)
    with in_body():
        wanted = team.check_invited(wanted)
        waits = await ask_first(
            member, bank, "MEMBER_ROLE", "member.invite", ("member", None),
            invited=msgspec.to_builtins(wanted),
        )  # fmt: skip
        if waits is not None:
            return waits
        invited = await team.invite(by, wanted)
    return Response(render_member(invited), status_code=HTTP_201_CREATED)


@post(
    "/api/v1/team/{member_id:str}/invite/",
    status_code=HTTP_200_OK,
    operation_id="resend_invite",
    opt=WRITES | refuses("not-found", "invite-not-pending"),
    tags=["team"],
)
async def resend_invite(member: Member, bank: Bank, member_id: str) -> TeamMember:
    """Mail the invitation once more: a new link for seven days; the old one opens nothing."""
    asked = _id(member_id)
    by = await administrator_of(member, bank)
    return render_member(await team.resend_invitation(by, asked))


@delete(
    "/api/v1/team/{member_id:str}/invite/",
    status_code=HTTP_200_OK,
    operation_id="cancel_invite",
    opt=WRITES | refuses("not-found", "invite-not-pending"),
    tags=["team"],
)
async def cancel_invite(member: Member, bank: Bank, member_id: str) -> TeamMember:
    """Take an invitation back. The answer is who was invited; afterwards he is not found."""
    asked = _id(member_id)
    by = await administrator_of(member, bank)
    return render_member(await team.cancel_invitation(by, asked))


def _sees(member: Member, other: team.Member) -> bool:
    """Tell whether the caller is shown what is private of a member."""
    own = member.access.member_id == other.member_id
    return own or team.changes_team(member.access.role)


def _id(text: str) -> UUID:
    return ids_in.path_uuid("member_id", text)


ROUTES = [
    get_team,
    get_team_member,
    update_team_member,
    deactivate_team_member,
    invite_team_member,
    resend_invite,
    cancel_invite,
]
