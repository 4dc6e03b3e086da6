"""The team of a company in a browser: everybody sees it, administrators change it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.page_context import FRESH, Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.team.administrator import administrator_in
from billfold.access.pages.team.company import membership_in, memberships
from billfold.access.pages.theme import go
from billfold.access.team import invitations as team_invitations
from billfold.access.team import members as team_members
from billfold.access.team import store as team_store
from billfold.access.team.rules import ROLES
from billfold.access.team.transaction import Administrator
from billfold.access.team.types import STATUSES, Invited
from billfold.access.users.types import Role
from billfold.platform.errors import InvalidInput, NotFound, Refused

ROLE_WORDS = {
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
async def choose_team(desk: Desk, visit: Visit) -> Response[Any]:
    """Lead to the only company's team, or let choose."""
    found = await memberships(desk, visit)
    if len(found) == 1:
        return go(f"/team/{found[0].customer_id}")
    return desk.looks.page(visit, "teams", memberships=found)


@get("/team/{customer_id:str}")
async def show_team(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Show who is in the team."""
    own = await membership_in(desk, visit, customer_id)
    found = await team_store.list_team(desk.bank.pool, own.customer_id, await desk.bank.now())
    groups = [(_HEADINGS[status], [m for m in found if m.status == status]) for status in STATUSES]
    return desk.looks.page(visit, "team", own=own, groups=[each for each in groups if each[1]])


@get("/team/{customer_id:str}/invite", opt=FRESH)
async def ask_whom(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Ask whom to invite, and as what."""
    by = await administrator_in(desk, visit, customer_id)
    return _invite_page(desk, visit, by, dict.fromkeys(_FIELDS, "") | {"role": ""})


@post("/team/{customer_id:str}/invite", opt=FRESH)
async def invite(customer_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Invite somebody."""
    by = await administrator_in(desk, visit, customer_id)
    given = {name: visit.form.get(name, "") for name in (*_FIELDS, "role")}
    role = _role(given["role"])
    if role is None:
        return _invite_page(desk, visit, by, given, wrong="Choose what this person may do.")
    wanted = Invited(
        first_name=given["first_name"],
        last_name=given["last_name"],
        email=given["email"],
        phone_number=given["phone_number"].strip() or None,
        role=role,
    )
    try:
        await team_invitations.invite(by, wanted)
    except InvalidInput as wrong:
        said = [f"The {_FIELDS[str(each.loc[0])]} {each.msg}." for each in wrong.errors]
        return _invite_page(desk, visit, by, given, wrong=" ".join(said))
    except Refused as refused:
        return _invite_page(desk, visit, by, given, wrong=refused.detail, status=409)
    return go(f"/team/{by.customer_id}")


@post("/team/{customer_id:str}/invitations/{member_id:str}/resend")
async def resend(customer_id: str, member_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Mail an invitation once more."""
    by = await administrator_in(desk, visit, customer_id)
    await team_invitations.resend_invitation(by, _id(member_id))
    return go(f"/team/{by.customer_id}")


@post("/team/{customer_id:str}/invitations/{member_id:str}/cancel")
async def cancel(customer_id: str, member_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Take an invitation back."""
    by = await administrator_in(desk, visit, customer_id)
    await team_invitations.cancel_invitation(by, _id(member_id))
    return go(f"/team/{by.customer_id}")


@get("/team/{customer_id:str}/members/{member_id:str}", opt=FRESH)
async def show_member(customer_id: str, member_id: str, desk: Desk, visit: Visit) -> Response[Any]:
    """Show what can be changed of a member."""
    by = await administrator_in(desk, visit, customer_id)
    return await _member_page(desk, visit, by, member_id)


@post("/team/{customer_id:str}/members/{member_id:str}", opt=FRESH)
async def change_member(
    customer_id: str, member_id: str, desk: Desk, visit: Visit
) -> Response[Any]:
    """Give a member another role, deactivate him, or activate him again."""
    by = await administrator_in(desk, visit, customer_id)
    asked, role = _id(member_id), _role(visit.form.get("role", ""))
    try:
        match visit.form.get("change"):
            case "deactivate":
                await team_members.deactivate_member(by, asked)
            case "activate":
                await team_members.change_member(by, asked, status="ACTIVE")
            case _ if role is not None:
                await team_members.change_member(by, asked, role=role)
            case _:
                return await _member_page(desk, visit, by, member_id, wrong="Choose a role.")
    except Refused as refused:
        return await _member_page(desk, visit, by, member_id, wrong=refused.detail, status=409)
    return go(f"/team/{by.customer_id}")


def _invite_page(
    desk: Desk,
    visit: Visit,
    by: Administrator,
    given: dict[str, str],
    *,
    wrong: str = "",
    status: int = 422,
) -> Response[Any]:
    return desk.looks.page(
        visit, "team_invite", status=status if wrong else 200, by=by, given=given,
        roles=ROLE_WORDS, wrong=wrong,
    )  # fmt: skip


async def _member_page(
    desk: Desk,
    visit: Visit,
    by: Administrator,
    member_id: str,
    *,
    wrong: str = "",
    status: int = 422,
) -> Response[Any]:
    found = await team_store.get_member(by.pool, by.customer_id, _id(member_id), by.now)
    if found.is_program:
        raise NotFound("This is a service user, who has a page of another kind.")
    return desk.looks.page(
        visit, "team_member", status=status if wrong else 200, by=by, member=found,
        roles=ROLE_WORDS, wrong=wrong,
    )  # fmt: skip


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("The address is wrong.") from None


def _role(text: str) -> Role | None:
    return next((role for role in ROLES if role == text), None)


PAGE_ROUTES: list[HTTPRouteHandler] = [
    choose_team, show_team, ask_whom, invite, resend, cancel, show_member, change_member,
]  # fmt: skip
