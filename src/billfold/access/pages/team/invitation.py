"""The page behind a mailed invitation: join a team, with an account or by making one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.account.password_reset import check_typed_password
from billfold.access.pages.page_context import ANYBODY, Desk
from billfold.access.pages.session import Visit, query_of
from billfold.access.pages.theme import go, session_cookie
from billfold.access.team import accept_invitation as accept_invitation_module
from billfold.access.team.accept_invitation import Bearer
from billfold.access.team.types import Invitation
from billfold.access.users import passwords, sessions
from billfold.access.users import rules as user_rules
from billfold.access.users import store as user_store
from billfold.audit.types import Origin
from billfold.platform.errors import InvalidInput

_LINK_CHARS_MAX = 100
_FIELDS = {"password": "password", "again": "password", "first_name": "first name",
           "last_name": "last name"}  # fmt: skip


@get("/invitation", opt=ANYBODY)
async def show_invitation(
    request: Request[Any, Any, Any], desk: Desk, visit: Visit
) -> Response[Any]:
    """Show what the link invites to. Looking does not use it up."""
    link = query_of(request.scope).get("link", "")[:_LINK_CHARS_MAX]
    found = await _find(desk, visit, link)
    if found is None:
        return _gone(desk, visit)
    return await _show(desk, visit, found, link)


@post("/invitation", opt=ANYBODY)
async def accept_invitation(desk: Desk, visit: Visit) -> Response[Any]:
    """Join: as who is signed in, or as somebody new, whose second factor comes next."""
    link = visit.form.get("link", "")[:_LINK_CHARS_MAX]
    found = await _find(desk, visit, link)
    if found is None:
        return _gone(desk, visit)
    if visit.is_signed_in:
        bearer = await _bearer(desk, visit, link)
        async with desk.bank.pool.acquire() as conn:
            joined = await accept_invitation_module.accept(conn, bearer, visit.person)
        return _gone(desk, visit) if joined is None else go(f"/team/{found.customer_id}")
    try:
        return await _join(desk, visit, found, link)
    except InvalidInput as wrong:
        first = wrong.errors[0]
        said = f"The {_FIELDS.get(str(first.loc[0]), 'form')} {first.msg}."
        return await _show(desk, visit, found, link, wrong=said)


async def _join(desk: Desk, visit: Visit, found: Invitation, link: str) -> Response[Any]:
    form, pool = visit.form, desk.bank.pool
    first_name = user_rules.check_name(form.get("first_name", found.first_name), "first_name")
    last_name = user_rules.check_name(form.get("last_name", found.last_name), "last_name")
    password = form.get("password", "")
    known = (found.email, first_name, last_name)
    check_typed_password(password, form.get("again", ""), known=known)
    password_hash = await desk.gate.hash(password)
    bearer = await _bearer(desk, visit, link)
    async with pool.acquire() as conn:
        person = await accept_invitation_module.join(
            conn, bearer, first_name=first_name, last_name=last_name, password_hash=password_hash
        )
    if person is None:
        return _gone(desk, visit)
    cookie = await sessions.open_session(
        pool, person.user_id, proved=("pwd",), complete=False, visitor=visit.visitor, now=visit.now
    )
    to = quote(f"/team/{found.customer_id}", safe="")
    return go(f"/second-factor?next={to}", session_cookie(cookie))


async def _bearer(desk: Desk, visit: Visit, link: str) -> Bearer:
    origin = Origin(
        kind="MEMBER",
        ip_address=visit.arrival.client,
        user_agent=visit.arrival.header(b"user-agent"),
    )
    return Bearer(link, origin, desk.bank.vault, await desk.bank.now(), visit.now)


async def _find(desk: Desk, visit: Visit, link: str) -> Invitation | None:
    now = await desk.bank.now()
    return await accept_invitation_module.find_invitation(
        desk.bank.pool, link, now=now, wall=visit.now
    )


async def _show(
    desk: Desk, visit: Visit, found: Invitation, link: str, *, wrong: str = ""
) -> Response[Any]:
    pool = desk.bank.pool
    person = await user_store.find_person_by_email(pool, found.email)
    has_account = person is not None and bool(
        await passwords.find_password_hash(pool, person.user_id)
    )
    back = quote(f"/invitation?link={link}", safe="")
    return desk.looks.page(
        visit,
        "invitation",
        status=422 if wrong else 200,
        found=found,
        link=link,
        has_account=has_account,
        sign_in=f"/sign-in?email={quote(found.email, safe='')}&next={back}",
        wrong=wrong,
    )


def _gone(desk: Desk, visit: Visit) -> Response[Any]:
    return desk.looks.page(visit, "invitation_gone", status=404)


PAGE_ROUTES: list[HTTPRouteHandler] = [show_invitation, accept_invitation]
