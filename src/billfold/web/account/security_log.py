"""Audit entries, alerts and e-mails about sign-ins and credentials of a user, in each of their teams.

A user may belong to several teams; each has its own log, which names them by their member id.
"""

from uuid import UUID

from litestar.background_tasks import BackgroundTask

from billfold.audit import record
from billfold.audit.rules import NewEntry
from billfold.events.email import outbox, templates
from billfold.events.email.templates import EmailContent
from billfold.events.notifications import notify
from billfold.identity.users import store
from billfold.identity.users.rules import User
from billfold.ledger.types import Origin
from billfold.platform.database.connection import Connection, Db
from billfold.platform.telemetry.metrics import SIGN_IN_FAILURES
from billfold.web.page_context import PageContext, PageResponse

LOGIN = "user.login"


async def send_email(conn: Db, page: PageContext, user: User, *, notice: EmailContent) -> None:
    """Send an e-mail to a user."""
    await outbox.queue_email(conn, page.vault, user.email, notice=notice, now=page.now)


def record_failed_login(answer: PageResponse, page: PageContext, user: User | None, factor: str) -> PageResponse:
    """Return the answer; a failed sign-in is recorded after it is sent.

    This keeps the response time from revealing whether the address is known.
    """
    SIGN_IN_FAILURES.add(factor)
    if user is not None:
        answer.background = BackgroundTask(record_wrong_factor, page, user, factor)
    return answer


async def record_factor_change(conn: Connection, page: PageContext, clause: str) -> None:
    """Record that the user's second factors changed, in the transaction of the change. `clause`: "a passkey was..."."""
    notice = templates.factor_changed(page.user, clause, page.now)
    await _record_credential_change(conn, page, page.user, action="user.factor_changed", clause=clause, notice=notice)


async def record_password_change(conn: Connection, page: PageContext, user: User) -> None:
    """Record that a user's password changed, in the transaction of the change."""
    notice = templates.password_changed(user, page.now)
    clause = "the password was changed"
    await _record_credential_change(conn, page, user, action="user.password_changed", clause=clause, notice=notice)


async def record_lockout(page: PageContext, user: User) -> None:
    """Record that sign-in is paused after too many failures, and alert the user and their teams."""
    sentence = (
        f"Five attempts to sign in as {user.name} failed, the last from {page.request.client}. "
        "For 15 minutes no more are accepted."
    )
    async with page.pool.acquire() as conn, conn.transaction():
        await send_email(conn, page, user, notice=templates.sign_in_locked(user, page.client_info, page.now))
        await _alert_teams(conn, page, user, sentence=sentence)
        await record_for_teams(conn, page, user, action="user.locked", failed=True)


async def record_for_teams(
    conn: Connection,
    page: PageContext,
    user: User,
    *,
    action: str,
    failed: bool = False,
    only: UUID | None = None,
    **details: object,
) -> None:
    """Add an entry about a user to the log of each of their teams, or of one `only`."""
    entries = [
        NewEntry(
            customer_id=team.customer_id,
            origin=origin_of(page, user.name, team.member_id),
            action=action,
            resource_type="user",
            resource_id=user.user_id,
            outcome="FAILURE" if failed else "SUCCESS",
            details=details,
        )
        for team in await store.list_user_memberships(conn, user.user_id, only_active=True)
        if only is None or team.customer_id == only
    ]
    await record.record_all(conn, page.vault, entries, now=page.now)


def origin_of(page: PageContext, name: str | None = None, member_id: UUID | None = None) -> Origin:
    """Return the origin of a request: the user, or the claimed one, and their address."""
    return Origin(
        kind="MEMBER", name=name, member_id=member_id, ip_address=page.request.client, user_agent=page.user_agent
    )


async def _record_credential_change(
    conn: Connection, page: PageContext, user: User, *, action: str, clause: str, notice: EmailContent
) -> None:
    await send_email(conn, page, user, notice=notice)
    await _alert_teams(conn, page, user, sentence=f"On the account of {user.name} {clause}.")
    await record_for_teams(conn, page, user, action=action, change=clause)


async def _alert_teams(conn: Connection, page: PageContext, user: User, *, sentence: str) -> None:
    """Send a security alert to the recipients in the user's teams."""
    for team in await store.list_user_memberships(conn, user.user_id, only_active=True):
        await notify.notify(
            conn,
            page.vault,
            team.customer_id,
            kind="SECURITY_ALERT",
            title=f"Security of {user.name}'s account",
            description=sentence,
            metadata={"member_id": team.member_id, "user_id": user.user_id},
            now=page.now,
            except_user_id=user.user_id,
        )


async def record_wrong_factor(page: PageContext, user: User, factor: str) -> None:
    """Record a wrong factor of a user."""
    async with page.pool.acquire() as conn, conn.transaction():
        await record_for_teams(conn, page, user, action=LOGIN, wrong=factor, failed=True)
