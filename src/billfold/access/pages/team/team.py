"""The team of a company in a browser: everybody sees it, administrators change it."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.page_context import RECENT_AUTHENTICATION, PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.team.administrator import get_membership, memberships, page_administrator, path_id
from billfold.access.pages.theme import redirect
from billfold.access.team import invitations as team_invitations
from billfold.access.team import members as team_members
from billfold.access.team import store as team_store
from billfold.access.team.rules import ROLES
from billfold.access.team.transaction import Administrator
from billfold.access.team.types import STATUSES, NewInvitation
from billfold.access.users.types import Role
from billfold.platform.errors import InvalidInput, NotFound, Refused

ROLE_DESCRIPTIONS = {
    "ADMIN": "Everything, this team included",
    "MANAGER": "Pockets, transfers and their approval",
    "APPROVER": "Approve transfers, and see everything",
    "INITIATOR": "Request transfers and change counterparties, and see everything",
    "VIEWER": "See everything, change nothing",
}
_FIELDS = {
    "first_name": "first name",
    "last_name": "last name",
    "email": "email address",
    "phone_number": "phone number",
}
_HEADINGS = {
    "ACTIVE": "Members",
    "PENDING": "Invited",
    "EXPIRED": "Invitations that have expired",
    "DEACTIVATED": "Deactivated",
}


@get("/team")
async def choose_team(server: PageServer, context: PageContext) -> Response[Any]:
    """Lead to the only company's team, or let choose."""
    found = await memberships(server, context)
    if len(found) == 1:
        return redirect(f"/team/{found[0].customer_id}")
    return server.theme.page(context, "teams", memberships=found)


@get("/team/{customer_id:str}")
async def show_team(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show who is in the team."""
    own = await get_membership(server, context, customer_id)
    found = await team_store.list_team(server.bank.pool, own.customer_id, await server.bank.now())
    groups = [(_HEADINGS[status], [m for m in found if m.status == status]) for status in STATUSES]
    return server.theme.page(context, "team", own=own, groups=[each for each in groups if each[1]])


@get("/team/{customer_id:str}/invite", opt=RECENT_AUTHENTICATION)
async def show_invite(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show the invitation form."""
    by = await page_administrator(server, context, customer_id)
    return _invite_page(server, context, by, given=dict.fromkeys(_FIELDS, "") | {"role": ""})


@post("/team/{customer_id:str}/invite", opt=RECENT_AUTHENTICATION)
async def invite(customer_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Invite a user."""
    by = await page_administrator(server, context, customer_id)
    given = {name: context.form.get(name, "") for name in (*_FIELDS, "role")}
    role = _role(given["role"])
    if role is None:
        return _invite_page(server, context, by, given=given, wrong="Choose a role.")
    invitation = NewInvitation(
        first_name=given["first_name"],
        last_name=given["last_name"],
        email=given["email"],
        phone_number=given["phone_number"].strip() or None,
        role=role,
    )
    try:
        await team_invitations.invite(by, invitation)
    except InvalidInput as wrong:
        messages = [f"The {_FIELDS[str(each.loc[0])]} {each.msg}." for each in wrong.errors]
        return _invite_page(server, context, by, given=given, wrong=" ".join(messages))
    except Refused as refused:
        return _invite_page(server, context, by, given=given, wrong=refused.detail, status=409)
    return redirect(f"/team/{by.customer_id}")


@post("/team/{customer_id:str}/invitations/{member_id:str}/resend")
async def resend(customer_id: str, member_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Resend an invitation."""
    by = await page_administrator(server, context, customer_id)
    await team_invitations.resend_invitation(by, path_id(member_id))
    return redirect(f"/team/{by.customer_id}")


@post("/team/{customer_id:str}/invitations/{member_id:str}/cancel")
async def cancel(customer_id: str, member_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Cancel an invitation."""
    by = await page_administrator(server, context, customer_id)
    await team_invitations.cancel_invitation(by, path_id(member_id))
    return redirect(f"/team/{by.customer_id}")


@get("/team/{customer_id:str}/members/{member_id:str}", opt=RECENT_AUTHENTICATION)
async def show_member(customer_id: str, member_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Show what can be changed of a member."""
    by = await page_administrator(server, context, customer_id)
    return await _member_page(server, context, by, member_id=member_id)


@post("/team/{customer_id:str}/members/{member_id:str}", opt=RECENT_AUTHENTICATION)
async def change_member(customer_id: str, member_id: str, server: PageServer, context: PageContext) -> Response[Any]:
    """Change a member's role, or deactivate or reactivate them."""
    by = await page_administrator(server, context, customer_id)
    member_uuid, role = path_id(member_id), _role(context.form.get("role", ""))
    try:
        match context.form.get("change"):
            case "deactivate":
                await team_members.deactivate_member(by, member_uuid)
            case "activate":
                await team_members.change_member(by, member_uuid, status="ACTIVE")
            case _ if role is not None:
                await team_members.change_member(by, member_uuid, role=role)
            case _:
                return await _member_page(server, context, by, member_id=member_id, wrong="Choose a role.")
    except Refused as refused:
        return await _member_page(server, context, by, member_id=member_id, wrong=refused.detail, status=409)
    return redirect(f"/team/{by.customer_id}")


def _invite_page(
    server: PageServer,
    context: PageContext,
    by: Administrator,
    given: dict[str, str],
    *,
    wrong: str = "",
    status: int = 422,
) -> Response[Any]:
    return server.theme.page(
        context,
        "team_invite",
        status=status if wrong else 200,
        by=by,
        given=given,
        roles=ROLE_DESCRIPTIONS,
        wrong=wrong,
    )


async def _member_page(
    server: PageServer, context: PageContext, by: Administrator, member_id: str, *, wrong: str = "", status: int = 422
) -> Response[Any]:
    found = await team_store.get_member(by.pool, by.customer_id, path_id(member_id), now=by.now)
    if found.is_service_user:
        raise NotFound("This is a service user, who has a page of another kind.")
    return server.theme.page(
        context,
        "team_member",
        status=status if wrong else 200,
        by=by,
        member=found,
        roles=ROLE_DESCRIPTIONS,
        wrong=wrong,
    )


def _role(text: str) -> Role | None:
    return next((role for role in ROLES if role == text), None)


PAGE_ROUTES: list[HTTPRouteHandler] = [
    choose_team,
    show_team,
    show_invite,
    invite,
    resend,
    cancel,
    show_member,
    change_member,
]
