"""What the teams of a person learn of his sign-ins and credentials: audit log and alerts.

A person may belong to several teams; each has its own log, and is told in it under his member id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from litestar import Response
from litestar.background_tasks import BackgroundTask

from billfold.access.pages.page_context import Desk
from billfold.access.pages.session import Visit
from billfold.access.users import sessions
from billfold.access.users import store as user_store
from billfold.access.users.types import Membership, Person, Proof
from billfold.audit import record as audit_record
from billfold.audit.types import Entry, Origin
from billfold.events.notifications import notify as notification_notify

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

LOGIN, FACTOR_CHANGED, PASSWORD_CHANGED = (
    "user.login",
    "user.factor_changed",
    "user.password_changed",
)


async def complete_login(desk: Desk, visit: Visit, *, proved: Proof) -> str | None:
    """Make the session whole after its second factor; return its cookie, None when it ended."""
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        cookie = await sessions.complete_session(
            conn, visit.cookie_hash, proved=proved, now=visit.now
        )
        if cookie is not None:
            await record(conn, desk, visit, visit.person, LOGIN, {"proved": ["pwd", proved]})
    return cookie


async def open_login(desk: Desk, visit: Visit, person: Person, *, proved: Proof) -> str:
    """Sign a person in who has proved enough at once; return the cookie."""
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        cookie = await sessions.open_session(
            conn,
            person.user_id,
            proved=(proved,),
            complete=True,
            visitor=visit.visitor,
            now=visit.now,
        )
        await record(conn, desk, visit, person, LOGIN, {"proved": [proved]})
    return cookie


def note_failure(
    answer: Response[Any], desk: Desk, visit: Visit, person: Person | None, factor: str
) -> Response[Any]:
    """Return the answer; when it is out, a failed sign-in is recorded.

    After it, so that nobody can tell by the time it takes whether the address is somebody's.
    """
    if person is not None:
        answer.background = BackgroundTask(_failed, desk, visit, person, factor)
    return answer


async def note_change(
    conn: Connection, desk: Desk, visit: Visit, person: Person, action: str, clause: str
) -> None:
    """Record that a person's credentials changed and alert his teams. `clause`: "a passkey was..."

    Goes into the transaction of the change.
    """
    await alert(conn, desk, visit, person, f"On the account of {person.name} {clause}.")
    await record(conn, desk, visit, person, action, {"change": clause})


async def note_lock(desk: Desk, visit: Visit, person: Person) -> None:
    """Record that sign-in is paused after too many failures, and alert the person's teams."""
    sentence = (
        f"Five tries to sign in as {person.name} failed, the last from {visit.arrival.client}. "
        "For 15 minutes no more are accepted."
    )
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        await alert(conn, desk, visit, person, sentence)
        await record(conn, desk, visit, person, "user.locked", {}, failed=True)


async def alert(conn: Connection, desk: Desk, visit: Visit, person: Person, sentence: str) -> None:
    """Send a security alert to everybody of the person's teams who gets them."""
    for team in await _teams_of(conn, person.user_id):
        await notification_notify.notify(
            conn, desk.bank.vault, team.customer_id, "SECURITY_ALERT",
            title=f"Security of {person.name}'s account", description=sentence,
            metadata={"member_id": team.member_id, "user_id": person.user_id}, now=visit.now,
            informed=person.user_id,
        )  # fmt: skip


async def record(
    conn: Connection,
    desk: Desk,
    visit: Visit,
    person: Person,
    action: str,
    details: Mapping[str, object],
    *,
    failed: bool = False,
    only: UUID | None = None,
) -> None:
    """Add an entry about a person to the log of each of his teams, or of one `only`."""
    entries = [
        Entry(
            customer_id=team.customer_id,
            origin=origin_of(visit, person, team.member_id),
            action=action,
            resource_type="user",
            resource_id=person.user_id,
            outcome="FAILURE" if failed else "SUCCESS",
            details=dict(details),
        )
        for team in await _teams_of(conn, person.user_id)
        if only is None or team.customer_id == only
    ]
    await audit_record.record_all(conn, desk.bank.vault, entries, now=visit.now)


def origin_of(visit: Visit, person: Person, member_id: UUID) -> Origin:
    """Return who it is, or says he is, and where he sits."""
    return Origin(
        kind="MEMBER",
        name=person.name,
        member_id=member_id,
        ip_address=visit.arrival.client,
        user_agent=visit.arrival.header(b"user-agent"),
    )


async def _failed(desk: Desk, visit: Visit, person: Person, factor: str) -> None:
    async with desk.bank.pool.acquire() as conn, conn.transaction():
        await record(conn, desk, visit, person, LOGIN, {"wrong": factor}, failed=True)


async def _teams_of(conn: Connection, user_id: UUID) -> list[Membership]:
    teams = await user_store.memberships_of(conn, user_id)
    return [team for team in teams if team.status == "ACTIVE"]
