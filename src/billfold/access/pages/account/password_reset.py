"""Pages behind mailed links: a first password, or a new one; and asking for such a link."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get, post
from litestar.background_tasks import BackgroundTask
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import grants
from billfold.access.pages.page_context import PUBLIC, PageServer
from billfold.access.pages.session import PageContext, parse_query
from billfold.access.pages.sign_in.signed_in import send_email
from billfold.access.pages.sign_in_audit import PASSWORD_CHANGED, record_credential_change
from billfold.access.pages.theme import redirect, session_cookie
from billfold.access.users import email_links as links
from billfold.access.users import lockout, passwords, sessions
from billfold.access.users import rules as user_rules
from billfold.access.users import store as user_store
from billfold.access.users.types import User
from billfold.events.email import templates as notices
from billfold.platform.errors import InvalidInput

_LINK_CHARS_MAX = 100


@get("/password", opt=PUBLIC)
async def show_new_password(request: Request[Any, Any, Any], server: PageServer, context: PageContext) -> Response[Any]:
    """Show the form for a new password. Loading it does not use the link up: mail clients do that."""
    link = parse_query(request.scope).get("link", "")[:_LINK_CHARS_MAX]
    user = await links.find_link_user(server.bank.pool, link, context.now)
    if user is None:
        return server.theme.page(context, "link_gone", status=404)
    return server.theme.page(context, "new_password", link=link, user=user, wrong="")


@post("/password", opt=PUBLIC)
async def set_new_password(server: PageServer, context: PageContext) -> Response[Any]:
    """Set the password and use the link up; the second factor is next.

    Whoever had to ask for a link may have been robbed: every session ends, and every token.
    """
    link = context.form.get("link", "")[:_LINK_CHARS_MAX]
    pool = server.bank.pool
    user = await links.find_link_user(pool, link, context.now)
    if user is None:
        return server.theme.page(context, "link_gone", status=404)
    password = context.form.get("password", "")
    try:
        check_new_password(user, password, context.form.get("again", ""))
    except InvalidInput as wrong:
        return server.theme.page(
            context, "new_password", status=422, link=link, user=user, wrong=f"The password {wrong.errors[0].msg}."
        )
    password_hash = await server.gate.hash(password)
    async with pool.acquire() as conn, conn.transaction():
        if await links.consume_link(conn, link, context.now) is None:
            return server.theme.page(context, "link_gone", status=404)
        await passwords.set_password(conn, user.user_id, password_hash, now=context.now)
        await lockout.clear_attempts(conn, lockout.password_subject(user.email))
        await sessions.end_sessions(conn, user.user_id)
        await grants.revoke_user_tokens(conn, user.user_id)
        await record_credential_change(
            conn, server, context, user=user, action=PASSWORD_CHANGED, clause="the password was changed"
        )
    await send_email(server, context, user, notice=notices.password_changed(user, context.now))
    cookie = await sessions.open_session(
        pool, user.user_id, auth_methods=("pwd",), complete=False, client_info=context.client_info, now=context.now
    )
    return redirect("/second-factor", session_cookie(cookie))


@get("/forgot", opt=PUBLIC)
async def show_forgot(server: PageServer, context: PageContext) -> Response[Any]:
    """Ask for the address to send a link to."""
    return server.theme.page(context, "forgot", sent_to="")


@post("/forgot", opt=PUBLIC)
async def send_link(server: PageServer, context: PageContext) -> Response[Any]:
    """Send a link if the address is known. Response and time are the same if it is not."""
    email = context.form.get("email", "").strip().lower()
    page: Response[Any] = server.theme.page(context, "forgot", sent_to=email)
    page.background = BackgroundTask(_send_link, server, context, email)
    return page


def check_new_password(user: User, password: str, again: str) -> None:
    """Refuse a password that is weak or was typed in two ways. Raises InvalidInput."""
    known = (user.email, user.first_name, user.last_name)
    check_repeated_password(password, again, known=known)


def check_repeated_password(password: str, again: str, *, known: tuple[str, ...]) -> None:
    """Do so for somebody of whom these words are known."""
    user_rules.check_password(password, known=known)
    if password != again:
        raise InvalidInput.at("again", msg="was typed differently the second time")


async def _send_link(server: PageServer, context: PageContext, email: str) -> None:
    async with server.bank.pool.acquire() as conn:
        user = await user_store.find_user_by_email(conn, email)
        if user is None or await links.was_sent_recently(conn, user.user_id, "reset", now=context.now):
            return
        secret = await links.create_link(conn, user.user_id, "reset", now=context.now)
    address = f"{server.origin}/password?link={secret}"
    await send_email(server, context, user, notice=notices.password_reset(user, address))


PAGE_ROUTES: list[HTTPRouteHandler] = [show_new_password, set_new_password, show_forgot, send_link]
