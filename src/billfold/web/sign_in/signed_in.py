"""Steps of a sign-in: attempts are counted, sessions opened and completed, new browsers reported by e-mail."""

import secrets
from urllib.parse import quote
from uuid import UUID

from billfold.events.email import templates as notices
from billfold.identity.users import lockout, sessions
from billfold.identity.users.lockout import AttemptSubject
from billfold.identity.users.rules import AuthMethod, User
from billfold.onboarding.agreements.store import find_unaccepted
from billfold.pages.theme import device_cookie, session_cookie
from billfold.platform.dates import et_date
from billfold.platform.telemetry.metrics import SIGN_IN_FAILURES
from billfold.web.page_context import LockedOut, PageContext, PageResponse, redirect
from billfold.web.sign_in_audit import LOGIN, record_for_teams, record_lockout, send_email

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
            conn,
            user.user_id,
            auth_methods=(auth_method,),
            complete=True,
            client_info=page.client_info,
            now=page.now,
        )
        await record_for_teams(conn, page, user, action=LOGIN, proved=[auth_method])
    return await _finish_sign_in(page, user, cookie, to=to)


async def reauthenticate(page: PageContext, auth_method: AuthMethod, to: str) -> PageResponse:
    """Count the signed-in user as having authenticated now."""
    cookie = await sessions.reauthenticate(page.pool, page.cookie_hash, auth_methods=auth_method, now=page.now)
    return redirect_to_sign_in(to) if cookie is None else redirect(to, [session_cookie(cookie)])


def redirect_to_sign_in(to: str) -> PageResponse:
    """Redirect a browser whose session has ended; it comes back to `to`."""
    return redirect(f"/sign-in?next={quote(to, safe='')}")


async def password_subject(page: PageContext, email: str, user: User | None) -> AttemptSubject:
    """Return the subject of a password given on a page: a browser that the user has signed in with is one itself."""
    is_own = user is not None and await sessions.is_known_device(page.pool, user.user_id, page.device)
    return lockout.password_subject(page.vault, email, page.device if is_own else None)


async def check_lockout(page: PageContext, subject: AttemptSubject, user: User | None) -> LockedOut | None:
    """Count an attempt. Return why none is accepted now, or None; the user learns of a lock by e-mail."""
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
    """Take back what was counted for a try that was right."""
    for each in (subject, lockout.ip_subject(page.request.client)):
        await lockout.clear_attempts(page.pool, each)


async def _finish_sign_in(page: PageContext, user: User, cookie: str, *, to: str) -> PageResponse:
    """Redirect the user who is signed in now, and notify them of a new browser by e-mail."""
    known = page.device if 0 < len(page.device) <= _DEVICE_CHARS_MAX else ""
    device = known or secrets.token_urlsafe(_DEVICE_BYTES)
    if await sessions.remember_device(page.pool, user.user_id, device, now=page.now):
        await send_email(page.pool, page, user, notice=notices.new_device(user, page.client_info, page.now))
    to = await _by_way_of_agreements(page, user, to)
    return redirect(to, [session_cookie(cookie), device_cookie(device)])


async def _by_way_of_agreements(page: PageContext, user: User, to: str) -> str:
    """Return where to go first: to the agreements while a company of an administrator has not accepted them."""
    bank = page.server.bank
    version = bank.terms.agreements.in_force(et_date(await bank.now()))
    company = version and await find_unaccepted(page.pool, user.user_id, version)
    return f"/companies/{company}/agreements?next={quote(to, safe='')}" if company else to
