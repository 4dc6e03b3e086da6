"""Signing in with an address of mail and a password, and signing out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from billfold.access.oauth import clients, consent, grants
from billfold.access.pages.page_context import ANYBODY, Desk
from billfold.access.pages.session import Visit, query_of
from billfold.access.pages.sign_in.signed_in import forget, in_words, wait_for
from billfold.access.pages.sign_in_audit import note_failure
from billfold.access.pages.theme import go, session_cookie
from billfold.access.users import lockout, passwords, sessions
from billfold.access.users import store as user_store
from billfold.platform.crypto import token
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id

_NOBODY = command_id("people", "nobody")
_WRONG = "The email address and the password do not belong together."


@get("/", opt=ANYBODY)
async def go_home() -> Response[bytes]:
    """Lead to the account."""
    return go("/account")


@get("/sign-in", opt=ANYBODY)
async def ask_who(request: Request[Any, Any, Any], desk: Desk, visit: Visit) -> Response[Any]:
    """Ask for address and password."""
    query = query_of(request.scope)
    to = visit.own_path(query.get("next"))
    if visit.is_signed_in:
        return go(to)
    return desk.looks.page(visit, "sign_in", next=to, email=query.get("email", ""), wrong="")


@post("/sign-in", opt=ANYBODY)
async def sign_in(desk: Desk, visit: Visit) -> Response[Any]:
    """Look at address and password; the second factor comes next."""
    to = visit.own_path(visit.form.get("next"))
    email = visit.form.get("email", "").strip().lower()
    person = await user_store.find_person_by_email(desk.bank.pool, email)
    subject = lockout.password_of(email)
    wait = await wait_for(desk, visit, subject, person)
    if wait:
        return _refused(desk, visit, to, email, wait)
    # Asked of everybody, so that an address that nobody has takes as long as any other.
    user_id = _NOBODY if person is None else person.user_id
    password_hash = await passwords.find_password_hash(desk.bank.pool, user_id)
    given = visit.form.get("password", "")
    if not await desk.gate.verify(password_hash, given) or person is None:
        page = desk.looks.page(visit, "sign_in", status=422, next=to, email=email, wrong=_WRONG)
        return note_failure(page, desk, visit, person, "password")
    await forget(desk, visit, subject)
    await sessions.end_session(desk.bank.pool, visit.cookie_hash)
    cookie = await sessions.open_session(
        desk.bank.pool,
        person.user_id,
        proved=("pwd",),
        complete=False,
        visitor=visit.visitor,
        now=visit.now,
    )
    return go(f"/second-factor?next={quote(to, safe='')}", session_cookie(cookie))


@get("/sign-out", opt=ANYBODY)
async def ask_to_leave(request: Request[Any, Any, Any], desk: Desk, visit: Visit) -> Response[Any]:
    """Ask whether to sign out: a link alone does not do it."""
    leaving = await _leaving(desk, query_of(request.scope))
    if visit.session is None:
        return desk.looks.page(visit, "signed_out", leaving=leaving)
    leads_to = None if leaving is None else leaving.address
    return desk.looks.page(visit, "sign_out", leads_to=leads_to, leaving=leaving)


@post("/sign-out", opt=ANYBODY)
async def sign_out(desk: Desk, visit: Visit) -> Response[Any]:
    """End the session, and the access tokens that came of it; lead on to a program that asked."""
    leaving = await _leaving(desk, visit.form)
    ended = await sessions.end_session(desk.bank.pool, visit.cookie_hash)
    if ended is not None:
        await grants.revoke_session(desk.bank.pool, ended)
    fresh, _ = token()
    return go("/sign-out" if leaving is None else leaving.address, session_cookie(fresh))


class Leaving(NamedTuple):
    """Where a program wants its person to be when he has signed out, `state` and all."""

    name: str
    client_id: str
    registered: str
    state: str
    address: str


async def _leaving(desk: Desk, sent: Mapping[str, str]) -> Leaving | None:
    """Return where to lead on to, or None. Raises `bad-request` where it is not registered."""
    target = sent.get("post_logout_redirect_uri")
    if not target:
        return None
    client = await clients.find_client(desk.bank.pool, sent.get("client_id", ""))
    if client is None or target not in client.post_logout_redirect_uris:
        raise BillfoldError("bad-request", "This link leads away from these pages.")
    state = sent.get("state", "")
    address = consent.redirect_with(target, {"state": state or None})
    return Leaving(client.name, client.client_id, target, state, address)


def _refused(desk: Desk, visit: Visit, to: str, email: str, wait: int) -> Response[Any]:
    sentence = (
        f"There were too many tries. Wait {in_words(wait)}, then try again. "
        "A passkey works all the same."
    )
    return desk.looks.page(
        visit,
        "sign_in",
        status=429,
        headers={"retry-after": str(wait)},
        next=to,
        email=email,
        wrong=sentence,
    )


PAGE_ROUTES: list[HTTPRouteHandler] = [go_home, ask_who, sign_in, ask_to_leave, sign_out]
