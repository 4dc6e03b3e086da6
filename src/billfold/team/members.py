"""Members of a team: roles, status, and the effects of a change on requests and keys."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.approvals.authorization_requests import request_change
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS, TRANSFER_REQUESTS
from billfold.approvals.store.reviews import find_blockers
from billfold.approvals.types import ApprovalRequirement, AuthorizationRequestRow
from billfold.audit.record import AuditedAction
from billfold.events import kinds
from billfold.events.changes import job_of, report
from billfold.events.email import outbox, templates
from billfold.events.notifications import notify
from billfold.identity.members import rules
from billfold.identity.members import store as member_store
from billfold.identity.members.rules import Member, MemberState
from billfold.identity.members.store import get_member
from billfold.identity.users import sessions
from billfold.identity.users import store as user_store
from billfold.identity.users.rules import PERMISSIONS, Role
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.oauth import clients, grants
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.team.administrator import Administrator, audited, check_grant, notify_administrators

# A user who registered a key, or a key of the service user that did, may have the private one.
_WITHOUT_MAKER = """
WITH RECURSIVE maker (client_id, member_id) AS (
  SELECT c.client_id, k.registered_by FROM oauth_client c JOIN client_key k USING (client_id)
   WHERE $1 IN (c.customer_id, c.owner_id) AND c.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
  UNION
  SELECT r.client_id, k.registered_by FROM maker r
    JOIN oauth_client c ON c.member_id = r.member_id JOIN client_key k ON k.client_id = c.client_id
)
SELECT c.client_id, c.member_id, c.name, r.member_id AS maker_id,
       coalesce(p.first_name || ' ' || p.last_name, s.name) AS maker
  FROM maker r JOIN oauth_client c USING (client_id)
  LEFT JOIN membership m ON m.member_id = r.member_id
  LEFT JOIN user_account p ON p.user_id = m.user_id
  LEFT JOIN oauth_client s ON s.member_id = r.member_id
 WHERE s.revoked_at IS NOT NULL OR m.status <> 'ACTIVE' OR p.status <> 'ACTIVE' OR m.role <> ALL($3)
 ORDER BY c.name, c.client_id, r.member_id
"""
MEMBER_CHANGED: Final = "member.changed"
"""The scheduled job that raises the event of a changed member."""
_MAKERS = [role for role, permissions in PERMISSIONS.items() if "team.write" in permissions]


class _MemberNotification(NamedTuple):
    """A notification: its type and texts, the name and value of its subject, and the member who caused it."""

    kind: str
    title: str
    description: str
    about: tuple[str, UUID | str]
    cause: UUID | None = None


@asynccontextmanager
async def notifying_of_effects(
    conn: Connection, vault: Vault, customer_id: UUID, *, now: datetime, wall: datetime
) -> AsyncIterator[None]:
    """Notify of the consequences of a team change made inside. `now` is the bank's time, `wall` wall time."""
    before = {(each.about, each.cause) async for each in _list_effects(conn, customer_id, now, wall=wall)}
    yield
    async for effect in _list_effects(conn, customer_id, now, wall=wall):
        if (effect.about, effect.cause) not in before:
            await notify.notify(
                conn,
                vault,
                customer_id,
                kind=effect.kind,
                title=effect.title,
                description=effect.description,
                metadata=dict([effect.about]),
                now=wall,
            )


async def _list_effects(
    conn: Connection, customer_id: UUID, now: datetime, *, wall: datetime
) -> AsyncIterator[_MemberNotification]:
    transfers = await TRANSFER_REQUESTS.list_pending(conn, customer_id, now=now)
    for request_id, blocker in (await find_blockers(conn, customer_id, transfers, kind=TRANSFER_REQUESTS)).items():
        title, about = "A transfer can no longer be approved", ("transfer_request_id", request_id)
        yield _MemberNotification("TRANSFER_REQUEST_BLOCKED", title, blocker, about)
    changes = await AUTHORIZATION_REQUESTS.list_pending(conn, customer_id, now=now)
    for request_id, blocker in (await find_blockers(conn, customer_id, changes, kind=AUTHORIZATION_REQUESTS)).items():
        title, about = "A sensitive change can no longer be approved", ("authorization_request_id", request_id)
        yield _MemberNotification("SECURITY_ALERT", title, blocker, about)
    for row in await conn.fetch(_WITHOUT_MAKER, customer_id, wall, _MAKERS):
        of_team = row["member_id"] is not None
        noun = "service user" if of_team else "application"
        description = (
            f"{row['maker']} registered a key of the {noun} {row['name']} and no longer administers the team. "
            "Anyone who has the private key can still act as it: replace its keys, or take it out of use."
        )
        about = ("member_id", row["member_id"]) if of_team else ("client_id", row["client_id"])
        yield _MemberNotification(
            "SECURITY_ALERT", f"The maker of a key of {row['name']} has left", description, about, row["maker_id"]
        )


# Lock in a fixed order, so that two administrators who demote each other wait instead of deadlocking;
# the second one then sees the first one's change.
_LOCK = """
SELECT m.member_id, m.role = 'ADMIN' AND m.status = 'ACTIVE' AND p.status = 'ACTIVE' AS leads
  FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1 AND (m.role = 'ADMIN' OR m.member_id = $2)
 ORDER BY m.member_id FOR UPDATE OF m
"""
_ROLE = "UPDATE membership SET role = $3, changed_at = $4 WHERE customer_id = $1 AND member_id = $2"
_INVITED_ROLE = "UPDATE invitation SET role = $3 WHERE customer_id = $1 AND member_id = $2"


async def change_member(
    by: Administrator,
    member_id: UUID,
    *,
    role: Role | None = None,
    status: Literal["ACTIVE", "DEACTIVATED"] | None = None,
    before: MemberState | None = None,
) -> Member | AuthorizationRequestRow:
    """Change a member's role or status, or both; a value that is already set is kept.

    A new role and reactivation are requested if a rule requires approvals. A deactivated member's sessions, tokens
    and grants end with this transaction. Raises NotFound, InvalidInput for the role of a client, Refused
    `last-administrator`, `member-not-active` for the status of an invitation, `member-shut-out`, `forbidden`;
    `content-changed` when the member no longer has the state `before`.
    """
    action = {None: "member.updated", "ACTIVE": "member.reactivated"}.get(status, "member.deactivated")
    details = {name: value for name, value in (("role", role), ("status", status)) if value is not None}
    async with audited(by, action, ("member", member_id), **details) as audited_action:
        found = await _lock_member(audited_action, by, member_id, role=role, status=status)
        is_so_already = role in {None, found.role} and status in {None, found.status}
        if before not in {None, MemberState(found.role, found.status)} and not is_so_already:
            raise Refused("content-changed", "The member has changed since the request. Send a new request.")
        terms = await _check_gift(audited_action, by, found, role=role, status=status)
        if terms is None:
            return await _change_member(audited_action, by, found, role=role, status=status)
        audited_action.skip()
    change = {"role": role, "status": status, "before": MemberState(found.role, found.status)}
    return await request_change(by, "member.update", ("member", member_id), change=change, terms=terms)


async def deactivate_member(by: Administrator, member_id: UUID) -> Member:
    """Deactivate an active member. Raises as `change_member`, also when they are not active."""
    async with audited(by, "member.deactivated", ("member", member_id)) as audited_action:
        found = await _lock_member(audited_action, by, member_id, role=None, status="DEACTIVATED")
        if found.status != "ACTIVE":
            raise Refused("member-not-active", f"The member is {found.status}.")
        return await _change_member(audited_action, by, found, role=None, status="DEACTIVATED")


async def _lock_member(
    audited_action: AuditedAction, by: Administrator, member_id: UUID, role: Role | None, status: str | None
) -> Member:
    """Return a member, locked together with the administrators, of whom one must remain."""
    locked = await audited_action.conn.fetch(_LOCK, by.customer_id, member_id)
    found = await get_member(audited_action.conn, by.vault, by.customer_id, member_id=member_id, now=by.now)
    if status == "DEACTIVATED" or role not in {None, "ADMIN"}:
        others = sum(row["leads"] for row in locked if row["member_id"] != member_id)
        rules.check_not_last_administrator(found, others)
    return found


async def _check_gift(
    audited_action: AuditedAction, by: Administrator, member: Member, *, role: Role | None, status: str | None
) -> ApprovalRequirement | None:
    """Check the permissions a change grants, and return the approvals it requires. Raises as `change_member`."""
    if role not in {None, member.role} and member.is_service_user:
        raise InvalidInput.at("role", msg="of a service user is SERVICE for good")
    if status not in {None, member.status} and member.invite_expires_at is not None:
        raise Refused("member-not-active", "The invitation has not been accepted yet.")
    if role in {None, member.role} and status in {"DEACTIVATED", None, member.status}:
        return None
    permissions = rules.permissions_of(role or member.role, member.scopes)
    had = rules.permissions_of(member.role, member.scopes) if member.status in {"ACTIVE", "PENDING"} else frozenset()
    return await check_grant(audited_action, by, permissions - had)


async def _change_member(
    audited_action: AuditedAction, by: Administrator, before: Member, role: Role | None, status: str | None
) -> Member:
    conn, member_id = audited_action.conn, before.member_id
    if role not in {None, before.role} or status not in {None, before.status}:
        await member_store.keep_former(conn, by.customer_id, [member_id], now=by.now)
    async with notifying_of_effects(conn, by.vault, by.customer_id, now=by.now, wall=by.wall):
        if role is not None and role != before.role:
            await _set_role(conn, by, before, role=role)
        if status is not None and status != before.status:
            await _set_status(conn, by, msgspec.structs.replace(before, role=role or before.role), status=status)
    after = await get_member(conn, by.vault, by.customer_id, member_id=member_id, now=by.now)
    if after == before:
        audited_action.skip()
    else:
        description = f"{by.name} changed {after.name}: {_describe_changes(before, after)}."
        await scheduler.schedule(conn, [job_of(MEMBER_CHANGED, member_id, by.customer_id, by.now)])
        await notify_administrators(
            audited_action, by, "TEAM_MEMBER_CHANGED", title="A member of the team was changed", description=description
        )
    return after


async def report_member(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of the role and the status that a member has now; none of an invitation that is gone."""
    assert job.customer_id is not None
    now = await bank.now()
    try:
        found = await get_member(bank.pool, bank.vault, job.customer_id, member_id=job.object_id, now=now)
    except NotFound:
        return
    payload = kinds.MemberPayload(member_id=found.member_id, role=found.role, status=found.status)
    await report(bank, job, kinds.MEMBER_UPDATED, payload)


async def _set_role(conn: Connection, by: Administrator, member: Member, role: Role) -> None:
    if member.invite_expires_at is not None:
        await conn.execute(_INVITED_ROLE, by.customer_id, member.member_id, role)
    else:
        await conn.execute(_ROLE, by.customer_id, member.member_id, role, by.wall)


async def _set_status(conn: Connection, by: Administrator, member: Member, status: str) -> None:
    if status == "ACTIVE":
        await _activate_member(conn, by, member)
    else:
        await _deactivate_member(conn, by, member)


async def _activate_member(conn: Connection, by: Administrator, member: Member) -> None:
    """Reactivate a member; ended sessions and grants stay ended."""
    if member.client_id is not None:
        await clients.reactivate_client(conn, member.client_id)
        return
    assert member.user_id is not None
    if await user_store.find_user(conn, by.vault, member.user_id) is None:
        raise Refused("member-shut-out", "The operator of the bank has shut this person out.")
    await member_store.add_member(conn, by.customer_id, member.user_id, role=member.role, now=by.now)


async def _deactivate_member(conn: Connection, by: Administrator, member: Member) -> None:
    """End the member's access here at once, including in every browser they are signed in with."""
    if member.client_id is not None:
        await clients.revoke_client(conn, member.client_id, now=by.wall)
        return
    assert member.user_id is not None
    await member_store.deactivate_member(conn, by.customer_id, member.user_id, now=by.wall)
    await grants.revoke_member_grants(conn, by.customer_id, member.user_id, now=by.wall)
    await sessions.end_sessions(conn, member.user_id)
    user = await user_store.find_user(conn, by.vault, member.user_id)
    if user is not None:
        notice = templates.access_ended(user, by.customer_name, by.wall)
        await outbox.queue_email(conn, by.vault, user.email, notice=notice, now=by.wall)


def _describe_changes(before: Member, after: Member) -> str:
    parts = []
    if before.role != after.role:
        parts.append(f"{before.role.title()} became {after.role.title()}")
    if before.status != after.status:
        parts.append(f"{before.status.lower()} became {after.status.lower()}")
    return ", ".join(parts)
