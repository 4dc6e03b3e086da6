"""Signing in with a password and a second factor, the same proof again before a sensitive step, and signing out."""

import secrets
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from litestar import get, post

from billfold.events.email import templates
from billfold.identity.users import lockout, passwords, sessions, store, totp
from billfold.identity.users.lockout import AttemptSubject
from billfold.identity.users.rules import AuthMethod, User
from billfold.oauth import clients, consent, grants
from billfold.onboarding.agreements.store import find_unaccepted
from billfold.platform.crypto import new_token
from billfold.platform.dates import et_date
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.ids import command_id
from billfold.platform.telemetry.metrics import SIGN_IN_FAILURES
from billfold.web.account.security_log import (
    LOGIN,
    record_failed_login,
    record_for_teams,
    record_lockout,
    record_wrong_factor,
    send_email,
)
from billfold.web.cookies import device_cookie, session_cookie
from billfold.web.page_context import FIRST_FACTOR, PUBLIC, FormError, LockedOut, PageContext, PageResponse, redirect

_DEVICE_BYTES = 32
_DEVICE_CHARS_MAX = 64


async def begin_sign_in(page: PageContext, user_id: UUID, to: str) -> PageResponse:
    """Open a session of the first factor, the password; the second factor is next."""
    cookie = await sessions.open_session(
        page.pool, user_id, auth_methods=("pwd",), complete=False, client_info=page.client_info, now=page.now
    )
    return redirect(f"/second-factor?next={quote(to, safe='')}", [session_cookie(cookie)])


async def complete_sign_in(page: PageContext, auth_method: AuthMethod, to: str) -> PageResponse:
    """Complete the session after its second factor."""
    async with page.pool.acquire() as conn, conn.transaction():
        cookie = await sessions.complete_session(conn, page.cookie_hash, auth_methods=auth_method, now=page.now)
        if cookie is None:
            return redirect_to_sign_in(to)
        await record_for_teams(conn, page, page.user, action=LOGIN, proved=["pwd", auth_method])
    return await _finish_sign_in(page, page.user, cookie, to=to)


async def sign_in_at_once(page: PageContext, user: User, auth_method: AuthMethod, to: str) -> PageResponse:
    """Sign a user in with all factors at once, in place of the browser's session."""
    await sessions.end_session(page.pool, page.cookie_hash)
    async with page.pool.acquire() as conn, conn.transaction():
        cookie = await sessions.open_session(
            conn, user.user_id, auth_methods=(auth_method,), complete=True, client_info=page.client_info, now=page.now
        )
        await record_for_teams(conn, page, user, action=LOGIN, proved=[auth_method])
    return await _finish_sign_in(page, user, cookie, to=to)


async def reauthenticate(page: PageContext, auth_method: AuthMethod, to: str) -> PageResponse:
    """Count the signed-in user as having authenticated now."""
    cookie = await sessions.reauthenticate(page.pool, page.cookie_hash, auth_methods=auth_method, now=page.now)
    return redirect_to_sign_in(to) if cookie is None else redirect(to, [session_cookie(cookie)])


def redirect_to_sign_in(to: str) -> PageResponse:
    """Redirect a browser whose session has ended; after sign-in it returns to `to`."""
    return redirect(f"/sign-in?next={quote(to, safe='')}")


async def password_subject(page: PageContext, email: str, user: User | None) -> AttemptSubject:
    """Return the subject of a password entered on a page: a browser that the user has signed in with counts alone."""
    is_own = user is not None and await sessions.is_known_device(page.pool, user.user_id, page.device)
    return lockout.password_subject(page.vault, email, page.device if is_own else None)


async def check_lockout(page: PageContext, subject: AttemptSubject, user: User | None) -> LockedOut | None:
    """Count an attempt. Return why none is accepted now, or None; the user is notified of a lock by e-mail."""
    async with page.pool.acquire() as conn:
        from_here = await lockout.begin_attempt(conn, lockout.ip_subject(page.request.client), page.now)
        if from_here.wait_seconds:
            SIGN_IN_FAILURES.add("locked")
            return LockedOut(from_here.wait_seconds)
        tried = await lockout.begin_attempt(conn, subject, page.now)
    if tried.locks and user is not None:
        await record_lockout(page, user)
    if tried.wait_seconds:
        SIGN_IN_FAILURES.add("locked")
        return LockedOut(tried.wait_seconds)
    return None


async def clear_lockout(page: PageContext, subject: AttemptSubject) -> None:
    """Undo the count of a correct attempt."""
    for each in (subject, lockout.ip_subject(page.request.client)):
        await lockout.clear_attempts(page.pool, each)


async def _finish_sign_in(page: PageContext, user: User, cookie: str, *, to: str) -> PageResponse:
    """Redirect the user who is signed in now, and notify them of a new browser by e-mail."""
    known = page.device if 0 < len(page.device) <= _DEVICE_CHARS_MAX else ""
    device = known or secrets.token_urlsafe(_DEVICE_BYTES)
    if await sessions.remember_device(page.pool, user.user_id, device, now=page.now):
        await send_email(page.pool, page, user, notice=templates.new_device(user, page.client_info, page.now))
    to = await _by_way_of_agreements(page, user, to)
    return redirect(to, [session_cookie(cookie), device_cookie(device)])


async def _by_way_of_agreements(page: PageContext, user: User, to: str) -> str:
    """Return the first page: the agreements, as long as a company of an administrator has not accepted them."""
    bank = page.server.bank
    version = bank.terms.agreements.in_force(et_date(await bank.now()))
    company = version and await find_unaccepted(page.pool, user.user_id, version)
    return f"/companies/{company}/agreements?next={quote(to, safe='')}" if company else to


_UNKNOWN_USER_ID = command_id("people", "nobody")
_WRONG_CREDENTIALS = InvalidInput.at("password", msg="does not belong to this email address")


@get("/sign-in", opt=PUBLIC)
async def show_sign_in(page: PageContext) -> PageResponse:
    """Show the sign-in form."""
    if page.is_signed_in:
        return redirect(page.next_path)
    return page.render("sign_in", next=page.next_path, email=page.query.get("email", ""))


@post("/sign-in", opt=PUBLIC)
async def sign_in(page: PageContext) -> PageResponse:
    """Check address and password; the second factor comes next."""
    next_path = page.next_path
    email = page.form.get("email", "").strip().lower()
    user = await store.find_user_by_email(page.pool, page.vault, email)
    subject = await password_subject(page, email, user)
    locked = await check_lockout(page, subject, user)
    if locked is not None:
        return page.render("sign_in", wrong=locked, next=next_path, email=email)
    # Done always, so that an unknown address takes as long as any other.
    user_id = _UNKNOWN_USER_ID if user is None else user.user_id
    password_hash = await passwords.find_password_hash(page.pool, user_id)
    password = page.form.get("password", "")
    if not await page.server.gate.verify(password_hash, password) or user is None:
        answer = page.render("sign_in", wrong=_WRONG_CREDENTIALS, next=next_path, email=email)
        return record_failed_login(answer, page, user, factor="password")
    await clear_lockout(page, subject)
    await sessions.end_session(page.pool, page.cookie_hash)
    return await begin_sign_in(page, user.user_id, next_path)


@get("/sign-out", opt=PUBLIC)
async def show_sign_out(page: PageContext) -> PageResponse:
    """Ask whether to sign out: a link is not enough."""
    leaving = await _logout_target(page, page.query)
    if page.session is None:
        return page.render("signed_out", leaving=leaving)
    return page.render("sign_out", form_target_uri=None if leaving is None else leaving.address, leaving=leaving)


@post("/sign-out", opt=PUBLIC)
async def sign_out(page: PageContext) -> PageResponse:
    """End the session and the access tokens issued from it; redirect to a client that requested it."""
    leaving = await _logout_target(page, page.form)
    ended = await sessions.end_session(page.pool, page.cookie_hash)
    if ended is not None:
        await grants.revoke_session_tokens(page.pool, ended)
    new_cookie, _ = new_token()
    return redirect("/sign-out" if leaving is None else leaving.address, [session_cookie(new_cookie)])


class LogoutTarget(NamedTuple):
    """The URL to which a client sends its user after sign-out, with `state`."""

    name: str
    client_id: str
    registered: str
    state: str
    address: str


async def _logout_target(page: PageContext, sent: Mapping[str, str]) -> LogoutTarget | None:
    """Return the target of the redirect, or None. Raises `bad-request` if it is not registered."""
    target = sent.get("post_logout_redirect_uri")
    if not target:
        return None
    client = await clients.find_client(page.pool, sent.get("client_id", ""))
    if client is None or target not in client.post_logout_redirect_uris:
        raise BillfoldError("bad-request", "This link leads away from these pages.")
    state = sent.get("state", "")
    address = consent.redirect_with(target, {"state": state or None})
    return LogoutTarget(client.name, client.client_id, target, state=state, address=address)


_WRONG = InvalidInput.at("code", msg="is wrong")


@get("/second-factor", opt=FIRST_FACTOR)
async def ask_for_code(page: PageContext) -> PageResponse:
    """Ask for a code or a passkey; a user who has neither sets one up."""
    return redirect(page.next_path) if page.is_signed_in else await _ask(page)


@post("/second-factor", opt=FIRST_FACTOR)
async def check_second_factor(page: PageContext) -> PageResponse:
    """Check a code; the session is complete when it is right."""
    next_path = page.next_path
    if page.is_signed_in:
        return redirect(next_path)
    return await _refuse_code(page) or await complete_sign_in(page, "otp", next_path)


@get("/confirm")
async def ask_reauthentication(page: PageContext) -> PageResponse:
    """Show the form that re-authenticates a signed-in user."""
    return await _ask(page)


@post("/confirm")
async def confirm(page: PageContext) -> PageResponse:
    """Check a code; if it is right, the user has authenticated now."""
    next_path = page.next_path
    return await _refuse_code(page) or await reauthenticate(page, "otp", next_path)


async def _ask(page: PageContext, wrong: FormError = "") -> PageResponse:
    factors = await store.get_factors(page.pool, page.user.user_id)
    next_path = page.next_path
    if not factors.has_second_factor:
        return redirect(f"/set-up?next={quote(next_path, safe='')}")
    return page.render("second_factor", wrong=wrong, action=page.request.path, next=next_path, factors=factors)


async def _refuse_code(page: PageContext) -> PageResponse | None:
    """Return the page with the error of a code, or None if it is right."""
    used = await use_code(page)
    return None if isinstance(used, int) else await _ask(page, used)


async def use_code(page: PageContext) -> int | FormError:
    """Use up the code of a form; return its time step, or its error. Wrong codes are counted and recorded."""
    user = page.user
    subject = lockout.totp_subject(user.user_id)
    locked = await check_lockout(page, subject, user)
    if locked is not None:
        return locked
    code = page.form.get("code", "")
    step = await totp.consume_code(page.pool, page.vault, user.user_id, code=code, now=page.now)
    if step is None:
        SIGN_IN_FAILURES.add("code")
        await record_wrong_factor(page, user, factor="code")
        wait = await totp.seconds_to_next(page.pool, page.vault, user.user_id, code=code, now=page.now)
        if wait is None:
            return _WRONG
        when = f"the next one in {wait} seconds" if wait else "another one now"
        return f"This code has been used already. Your app shows {when}."
    await clear_lockout(page, subject)
    return step
