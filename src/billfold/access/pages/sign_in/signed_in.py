"""What happens when somebody has proved who he is: a new cookie, and word of a new browser."""

from __future__ import annotations

import secrets

from litestar import Response

from billfold.access.pages.page_context import Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.sign_in_audit import note_lock
from billfold.access.pages.theme import device_cookie, go, session_cookie
from billfold.access.users import lockout, sessions
from billfold.access.users.lockout import Subject
from billfold.access.users.types import Person
from billfold.events.email import outbox
from billfold.events.email import templates as notices
from billfold.events.email.templates import Notice

_DEVICE_BYTES = 32
_DEVICE_CHARS_MAX = 64


async def come_in(
    desk: Desk, visit: Visit, person: Person, cookie: str, to: str
) -> Response[bytes]:
    """Send on whoever is signed in now, and tell him by mail when his browser is a new one."""
    pool = desk.bank.pool
    known = visit.device if 0 < len(visit.device) <= _DEVICE_CHARS_MAX else ""
    device = known or secrets.token_urlsafe(_DEVICE_BYTES)
    if await sessions.meet_device(pool, person.user_id, device, visit.now):
        await write(desk, visit, person, notices.new_device(person, visit.visitor, visit.now))
    return go(to, session_cookie(cookie), device_cookie(device))


async def write(desk: Desk, visit: Visit, person: Person, notice: Notice) -> None:
    """Write a letter to a person."""
    await outbox.write_letter(desk.bank.pool, desk.bank.vault, person.email, notice, now=visit.now)


async def wait_for(desk: Desk, visit: Visit, subject: Subject, person: Person | None) -> int:
    """Count a try and return for how many seconds none is accepted; a lock is told by mail."""
    async with desk.bank.pool.acquire() as conn:
        address = lockout.address_of(visit.arrival.client)
        from_here = await lockout.begin_try(conn, address, visit.now)
        if from_here.wait_seconds:
            return from_here.wait_seconds
        tried = await lockout.begin_try(conn, subject, visit.now)
    if tried.locks and person is not None:
        await write(desk, visit, person, notices.locked(person, visit.visitor, visit.now))
        await note_lock(desk, visit, person)
    return tried.wait_seconds


async def forget(desk: Desk, visit: Visit, subject: Subject) -> None:
    """Take back what was counted for a try that was right."""
    address = lockout.address_of(visit.arrival.client)
    for each in (subject, address):
        await lockout.forget_tries(desk.bank.pool, each)


def in_words(seconds: int) -> str:
    """Say how long to wait."""
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return "1 second" if seconds == 1 else f"{seconds} seconds"
    minutes = -(-seconds // 60)
    return "1 minute" if minutes == 1 else f"{minutes} minutes"
