"""What follows a completed sign-in: a new cookie, and an e-mail about a new browser."""

from __future__ import annotations

import secrets

from litestar import Response

from billfold.access.pages.page_context import PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.sign_in_audit import record_lockout
from billfold.access.pages.theme import device_cookie, redirect, session_cookie
from billfold.access.users import lockout, sessions
from billfold.access.users.lockout import AttemptSubject
from billfold.access.users.types import User
from billfold.events.email import outbox
from billfold.events.email import templates as notices
from billfold.events.email.templates import EmailContent

_DEVICE_BYTES = 32
_DEVICE_CHARS_MAX = 64


async def finish_sign_in(server: PageServer, context: PageContext, user: User, cookie: str, to: str) -> Response[bytes]:
    """Redirect the user who is signed in now, and notify them of a new browser by e-mail."""
    pool = server.bank.pool
    known = context.device if 0 < len(context.device) <= _DEVICE_CHARS_MAX else ""
    device = known or secrets.token_urlsafe(_DEVICE_BYTES)
    if await sessions.remember_device(pool, user.user_id, device, now=context.now):
        await send_email(server, context, user, notice=notices.new_device(user, context.client_info, context.now))
    return redirect(to, session_cookie(cookie), device_cookie(device))


async def send_email(server: PageServer, context: PageContext, user: User, notice: EmailContent) -> None:
    """Write an e-mail to a user."""
    await outbox.queue_email(server.bank.pool, server.bank.vault, user.email, notice=notice, now=context.now)


async def check_lockout(server: PageServer, context: PageContext, subject: AttemptSubject, user: User | None) -> int:
    """Count an attempt and return for how many seconds none is accepted; a lock is notified by e-mail."""
    async with server.bank.pool.acquire() as conn:
        address = lockout.ip_subject(context.arrival.client)
        from_here = await lockout.begin_attempt(conn, address, context.now)
        if from_here.wait_seconds:
            return from_here.wait_seconds
        tried = await lockout.begin_attempt(conn, subject, context.now)
    if tried.locks and user is not None:
        await send_email(server, context, user, notice=notices.sign_in_locked(user, context.client_info, context.now))
        await record_lockout(server, context, user)
    return tried.wait_seconds


async def clear_lockout(server: PageServer, context: PageContext, subject: AttemptSubject) -> None:
    """Take back what was counted for a try that was right."""
    address = lockout.ip_subject(context.arrival.client)
    for each in (subject, address):
        await lockout.clear_attempts(server.bank.pool, each)


def format_wait(seconds: int) -> str:
    """Say how long to wait."""
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return "1 second" if seconds == 1 else f"{seconds} seconds"
    minutes = -(-seconds // 60)
    return "1 minute" if minutes == 1 else f"{minutes} minutes"
