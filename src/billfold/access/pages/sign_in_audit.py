"""Audit entries and alerts about sign-ins and credentials of a user, in each of their teams.

A user may belong to several teams; each has its own log, which names them by their member id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from litestar import Response
from litestar.background_tasks import BackgroundTask

from billfold.access.pages.page_context import PageServer
from billfold.access.pages.session import PageContext
from billfold.access.users import sessions
from billfold.access.users import store as user_store
from billfold.access.users.types import AuthMethod, Membership, User
from billfold.audit import record as audit_record
from billfold.audit.types import NewEntry, Origin
from billfold.events.notifications import notify as notification_notify

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

LOGIN, FACTOR_CHANGED, PASSWORD_CHANGED = ("user.login", "user.factor_changed", "user.password_changed")


async def complete_login(server: PageServer, context: PageContext, *, auth_methods: AuthMethod) -> str | None:
    """Make the session whole after its second factor; return its cookie, None when it ended."""
    async with server.bank.pool.acquire() as conn, conn.transaction():
        cookie = await sessions.complete_session(conn, context.cookie_hash, auth_methods=auth_methods, now=context.now)
        if cookie is not None:
            await record_for_teams(
                conn, server, context, user=context.user, action=LOGIN, details={"proved": ["pwd", auth_methods]}
            )
    return cookie


async def start_login(server: PageServer, context: PageContext, user: User, *, auth_methods: AuthMethod) -> str:
    """Sign a user in with all factors at once; return the cookie."""
    async with server.bank.pool.acquire() as conn, conn.transaction():
        cookie = await sessions.open_session(
            conn,
            user.user_id,
            auth_methods=(auth_methods,),
            complete=True,
            client_info=context.client_info,
            now=context.now,
        )
        await record_for_teams(conn, server, context, user=user, action=LOGIN, details={"proved": [auth_methods]})
    return cookie


def record_failed_login(
    answer: Response[Any], server: PageServer, context: PageContext, user: User | None, factor: str
) -> Response[Any]:
    """Return the answer; when it is out, a failed sign-in is recorded.

    After it, so that response time does not reveal whether the address is known.
    """
    if user is not None:
        answer.background = BackgroundTask(_record_failure, server, context, user, factor)
    return answer


async def record_credential_change(
    conn: Connection, server: PageServer, context: PageContext, user: User, action: str, clause: str
) -> None:
    """Record that a user's credentials changed and alert their teams. `clause`: "a passkey was..."

    Goes into the transaction of the change.
    """
    await alert_teams(conn, server, context, user=user, sentence=f"On the account of {user.name} {clause}.")
    await record_for_teams(conn, server, context, user=user, action=action, details={"change": clause})


async def record_lockout(server: PageServer, context: PageContext, user: User) -> None:
    """Record that sign-in is paused after too many failures, and alert the user's teams."""
    sentence = (
        f"Five attempts to sign in as {user.name} failed, the last from {context.arrival.client}. "
        "For 15 minutes no more are accepted."
    )
    async with server.bank.pool.acquire() as conn, conn.transaction():
        await alert_teams(conn, server, context, user=user, sentence=sentence)
        await record_for_teams(conn, server, context, user=user, action="user.locked", details={}, failed=True)


async def alert_teams(conn: Connection, server: PageServer, context: PageContext, user: User, sentence: str) -> None:
    """Send a security alert to everybody of the user's teams who gets them."""
    for team in await _teams_of(conn, user.user_id):
        await notification_notify.notify(
            conn,
            server.bank.vault,
            team.customer_id,
            kind="SECURITY_ALERT",
            title=f"Security of {user.name}'s account",
            description=sentence,
            metadata={"member_id": team.member_id, "user_id": user.user_id},
            now=context.now,
            except_user_id=user.user_id,
        )


async def record_for_teams(
    conn: Connection,
    server: PageServer,
    context: PageContext,
    user: User,
    action: str,
    details: Mapping[str, object],
    *,
    failed: bool = False,
    only: UUID | None = None,
) -> None:
    """Add an entry about a user to the log of each of their teams, or of one `only`."""
    entries = [
        NewEntry(
            customer_id=team.customer_id,
            origin=origin_of(context, user, team.member_id),
            action=action,
            resource_type="user",
            resource_id=user.user_id,
            outcome="FAILURE" if failed else "SUCCESS",
            details=dict(details),
        )
        for team in await _teams_of(conn, user.user_id)
        if only is None or team.customer_id == only
    ]
    await audit_record.record_all(conn, server.bank.vault, entries, now=context.now)


def origin_of(context: PageContext, user: User, member_id: UUID) -> Origin:
    """Return the origin of a request: the user, or the claimed one, and their address."""
    return Origin(
        kind="MEMBER",
        name=user.name,
        member_id=member_id,
        ip_address=context.arrival.client,
        user_agent=context.arrival.header(b"user-agent"),
    )


async def _record_failure(server: PageServer, context: PageContext, user: User, factor: str) -> None:
    async with server.bank.pool.acquire() as conn, conn.transaction():
        await record_for_teams(conn, server, context, user=user, action=LOGIN, details={"wrong": factor}, failed=True)


async def _teams_of(conn: Connection, user_id: UUID) -> list[Membership]:
    teams = await user_store.list_user_memberships(conn, user_id)
    return [team for team in teams if team.status == "ACTIVE"]
