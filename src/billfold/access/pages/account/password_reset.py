"""Pages behind mailed links: a first password, or a new one; and asking for such a link."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get, post
from litestar.background_tasks import BackgroundTask
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import grants
from billfold.access.pages.page_context import ANYBODY, Desk
from billfold.access.pages.session import Visit, query_of
from billfold.access.pages.sign_in.signed_in import write
from billfold.access.pages.sign_in_audit import PASSWORD_CHANGED, note_change
from billfold.access.pages.theme import go, session_cookie
from billfold.access.users import email_links as links
from billfold.access.users import lockout, passwords, sessions
from billfold.access.users import rules as user_rules
from billfold.access.users import store as user_store
from billfold.access.users.types import Person
from billfold.events.email import templates as notices
from billfold.platform.errors import InvalidInput

_LINK_CHARS_MAX = 100


@get("/password", opt=ANYBODY)
async def ask_for_new_password(
    request: Request[Any, Any, Any], desk: Desk, visit: Visit
) -> Response[Any]:
    """Ask for a password. Looking at the page does not use the link up: mail programs do that."""
    link = query_of(request.scope).get("link", "")[:_LINK_CHARS_MAX]
    person = await links.person_of_link(desk.bank.pool, link, visit.now)
    if person is None:
        return desk.looks.page(visit, "link_gone", status=404)
    return desk.looks.page(visit, "new_password", link=link, person=person, wrong="")


@post("/password", opt=ANYBODY)
async def set_new_password(desk: Desk, visit: Visit) -> Response[Any]:
    """Set the password and use the link up; the second factor is next.

    Whoever had to ask for a link may have been robbed: every session ends, and every token.
    """
    link = visit.form.get("link", "")[:_LINK_CHARS_MAX]
    pool = desk.bank.pool
    person = await links.person_of_link(pool, link, visit.now)
    if person is None:
        return desk.looks.page(visit, "link_gone", status=404)
    password = visit.form.get("password", "")
    try:
        check_new_password(person, password, visit.form.get("again", ""))
    except InvalidInput as wrong:
        return desk.looks.page(
            visit, "new_password", status=422, link=link, person=person,
            wrong=f"The password {wrong.errors[0].msg}.",
        )  # fmt: skip
    password_hash = await desk.gate.hash(password)
    async with pool.acquire() as conn, conn.transaction():
        if await links.use_link(conn, link, visit.now) is None:
            return desk.looks.page(visit, "link_gone", status=404)
        await passwords.set_password(conn, person.user_id, password_hash, now=visit.now)
        await lockout.forget_tries(conn, lockout.password_of(person.email))
        await sessions.end_sessions(conn, person.user_id)
        await grants.revoke_all_of(conn, person.user_id)
        await note_change(conn, desk, visit, person, PASSWORD_CHANGED, "the password was changed")
    await write(desk, visit, person, notices.password_changed(person, visit.now))
    cookie = await sessions.open_session(
        pool, person.user_id, proved=("pwd",), complete=False, visitor=visit.visitor, now=visit.now
    )
    return go("/second-factor", session_cookie(cookie))


@get("/forgot", opt=ANYBODY)
async def ask_where_to(desk: Desk, visit: Visit) -> Response[Any]:
    """Ask for the address to send a link to."""
    return desk.looks.page(visit, "forgot", sent_to="")


@post("/forgot", opt=ANYBODY)
async def send_link(desk: Desk, visit: Visit) -> Response[Any]:
    """Send a link if anybody has the address. Page and time are the same if nobody has."""
    email = visit.form.get("email", "").strip().lower()
    page: Response[Any] = desk.looks.page(visit, "forgot", sent_to=email)
    page.background = BackgroundTask(_send_link, desk, visit, email)
    return page


def check_new_password(person: Person, password: str, again: str) -> None:
    """Refuse a password that is weak or was typed in two ways. Raises InvalidInput."""
    known = (person.email, person.first_name, person.last_name)
    check_typed_password(password, again, known=known)


def check_typed_password(password: str, again: str, *, known: tuple[str, ...]) -> None:
    """Do so for somebody of whom these words are known."""
    user_rules.check_password(password, known=known)
    if password != again:
        raise InvalidInput.at("again", msg="was typed differently the second time")


async def _send_link(desk: Desk, visit: Visit, email: str) -> None:
    async with desk.bank.pool.acquire() as conn:
        person = await user_store.find_person_by_email(conn, email)
        if person is None or await links.was_sent_lately(conn, person.user_id, "reset", visit.now):
            return
        secret = await links.new_link(conn, person.user_id, "reset", now=visit.now)
    address = f"{desk.origin}/password?link={secret}"
    await write(desk, visit, person, notices.reset(person, address))


PAGE_ROUTES: list[HTTPRouteHandler] = [
    ask_for_new_password,
    set_new_password,
    ask_where_to,
    send_link,
]
