"""The page behind a mailed invitation: join a team, with an account or by making one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.account.password_reset import check_repeated_password
from billfold.access.pages.page_context import PUBLIC, PageServer
from billfold.access.pages.session import PageContext, parse_query
from billfold.access.pages.theme import redirect, session_cookie
from billfold.access.team import accept_invitation as accept_invitation_module
from billfold.access.team.accept_invitation import InvitationAcceptance
from billfold.access.team.types import Invitation
from billfold.access.users import passwords, sessions
from billfold.access.users import rules as user_rules
from billfold.access.users import store as user_store
from billfold.audit.types import Origin
from billfold.platform.errors import InvalidInput

_LINK_CHARS_MAX = 100
_FIELDS = {"password": "password", "again": "password", "first_name": "first name", "last_name": "last name"}


@get("/invitation", opt=PUBLIC)
async def show_invitation(request: Request[Any, Any, Any], server: PageServer, context: PageContext) -> Response[Any]:
    """Show what the link invites to. Looking does not use it up."""
    link = parse_query(request.scope).get("link", "")[:_LINK_CHARS_MAX]
    invitation = await _find(server, context, link)
    if invitation is None:
        return _link_expired(server, context)
    return await _show(server, context, invitation, link=link)


@post("/invitation", opt=PUBLIC)
async def accept_invitation(server: PageServer, context: PageContext) -> Response[Any]:
    """Accept as the signed-in user, or as a new user, whose second factor comes next."""
    link = context.form.get("link", "")[:_LINK_CHARS_MAX]
    invitation = await _find(server, context, link)
    if invitation is None:
        return _link_expired(server, context)
    if context.is_signed_in:
        acceptance = await _acceptance(server, context, link)
        async with server.bank.pool.acquire() as conn:
            joined = await accept_invitation_module.redeem_invitation(conn, acceptance, context.user)
        return _link_expired(server, context) if joined is None else redirect(f"/team/{invitation.customer_id}")
    try:
        return await _join(server, context, invitation, link=link)
    except InvalidInput as error:
        first = error.errors[0]
        message = f"The {_FIELDS.get(str(first.loc[0]), 'form')} {first.msg}."
        return await _show(server, context, invitation, link=link, error=message)


async def _join(server: PageServer, context: PageContext, invitation: Invitation, link: str) -> Response[Any]:
    form, pool = context.form, server.bank.pool
    first_name = user_rules.check_name(form.get("first_name", invitation.first_name), "first_name")
    last_name = user_rules.check_name(form.get("last_name", invitation.last_name), "last_name")
    password = form.get("password", "")
    known = (invitation.email, first_name, last_name)
    check_repeated_password(password, form.get("again", ""), known=known)
    password_hash = await server.gate.hash(password)
    acceptance = await _acceptance(server, context, link)
    async with pool.acquire() as conn:
        user = await accept_invitation_module.accept_as_new_user(
            conn, acceptance, first_name=first_name, last_name=last_name, password_hash=password_hash
        )
    if user is None:
        return _link_expired(server, context)
    cookie = await sessions.open_session(
        pool, user.user_id, auth_methods=("pwd",), complete=False, client_info=context.client_info, now=context.now
    )
    next_path = quote(f"/team/{invitation.customer_id}", safe="")
    return redirect(f"/second-factor?next={next_path}", session_cookie(cookie))


async def _acceptance(server: PageServer, context: PageContext, link: str) -> InvitationAcceptance:
    origin = Origin(kind="MEMBER", ip_address=context.arrival.client, user_agent=context.arrival.header(b"user-agent"))
    return InvitationAcceptance(link, origin, server.bank.vault, now=await server.bank.now(), wall=context.now)


async def _find(server: PageServer, context: PageContext, link: str) -> Invitation | None:
    now = await server.bank.now()
    return await accept_invitation_module.find_invitation(server.bank.pool, link, now=now, wall=context.now)


async def _show(
    server: PageServer, context: PageContext, invitation: Invitation, link: str, *, error: str = ""
) -> Response[Any]:
    pool = server.bank.pool
    user = await user_store.find_user_by_email(pool, invitation.email)
    has_account = user is not None and bool(await passwords.find_password_hash(pool, user.user_id))
    back = quote(f"/invitation?link={link}", safe="")
    return server.theme.page(
        context,
        "invitation",
        status=422 if error else 200,
        found=invitation,
        link=link,
        has_account=has_account,
        sign_in=f"/sign-in?email={quote(invitation.email, safe='')}&next={back}",
        wrong=error,
    )


def _link_expired(server: PageServer, context: PageContext) -> Response[Any]:
    return server.theme.page(context, "invitation_gone", status=404)


PAGE_ROUTES: list[HTTPRouteHandler] = [show_invitation, accept_invitation]
