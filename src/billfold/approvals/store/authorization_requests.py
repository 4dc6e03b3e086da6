"""Authorization requests: one member requests a sensitive change, another confirms it.

A change of an approval rule is applied in the transaction of its confirmation. For other changes
that transaction schedules the job that applies them.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from billfold.approvals import rules
from billfold.approvals.store.approval_rules import find_rule, put_rule, remove_rule
from billfold.approvals.store.fingerprints import audited_request, record_checksums
from billfold.approvals.store.reviews import Subject, record_review
from billfold.approvals.types import Actor, ApprovalRequirement, AuthorizationRequestRow, Decision, Rule, Status
from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.audit.types import Origin
from billfold.events.notifications import notify as notification_notify
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.types import ScheduledJob
from billfold.platform import ids
from billfold.platform.errors import NotFound, Refused

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection, Pool

EXPIRE_AUTHORIZATION_REQUEST: Final = "change.expire"
APPLY_AUTHORIZATION_REQUEST: Final = "change.apply"
"""Kinds of scheduled jobs; the object is the request."""
RULE_CHANGES: Final = frozenset({"approval_rule.create", "approval_rule.update", "approval_rule.delete"})
_RESOURCE, _TABLE = "authorization_request", "authorization_request"
_NOT_PENDING = "authorization-request-not-pending"
_DESCRIPTIONS = {
    "approval_rule.create": "a new approval rule",
    "approval_rule.update": "another approval rule in the place of one",
    "approval_rule.delete": "the end of an approval rule",
    "member.invite": "an invitation into the team",
    "member.update": "another role or status of a member",
    "counterparty.create": "a new counterparty",
}

_COLUMNS = """
SELECT q.customer_id, q.request_id, q.action, q.resource_type, q.resource_id, q.content,
       q.content_hash, q.member_id, q.user_id, q.client_id, q.terms,
       CASE WHEN q.status = 'PENDING' AND q.expires_at <= $2 THEN 'EXPIRED'
            ELSE q.status END AS status,
       q.applied_at, q.refused, q.created_at, q.updated_at, q.expires_at
  FROM authorization_request q WHERE q.customer_id = $1
"""
_ONE = f"{_COLUMNS} AND q.request_id = $3"
_LIST = f"""
SELECT * FROM ({_COLUMNS}) q
 WHERE ($3::text[] IS NULL OR q.status = ANY($3)) AND ($4::text[] IS NULL OR q.action = ANY($4))
"""
_LOCK = "SELECT 1 FROM authorization_request WHERE customer_id = $1 AND request_id = $2 FOR UPDATE"
_INSERT = """
INSERT INTO authorization_request (customer_id, request_id, action, resource_type, resource_id, content,
                            content_hash, member_id, user_id, client_id, terms, status, created_at,
                            updated_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'PENDING', $12, $12, $13)
RETURNING *
"""
_MOVE = """
UPDATE authorization_request SET status = $3, updated_at = $4
 WHERE customer_id = $1 AND request_id = $2 AND status = 'PENDING' RETURNING *
"""
_APPLIED = """
UPDATE authorization_request SET applied_at = $3, refused = $4, updated_at = $3, resource_id = $5
 WHERE customer_id = $1 AND request_id = $2 AND status = 'APPROVED' AND applied_at IS NULL
RETURNING *
"""


async def request_change(
    by: Actor, action: str, resource: tuple[str, UUID | None], *, change: dict[str, Any], terms: ApprovalRequirement
) -> AuthorizationRequestRow:
    """Request a change. `change` is ready for JSON and all that is needed to apply it."""
    kind, resource_id = resource
    request_id = ids.new()
    text = rules.text_of({"action": action, "resource_id": resource_id, "change": change})
    async with audited_request(by, _RESOURCE, "created", request_id=request_id, change=action) as audited_action:
        conn, expires_at = audited_action.conn, by.now + rules.REQUEST_LIFETIME
        made = await conn.fetch(
            _INSERT,
            by.customer_id,
            request_id,
            action,
            kind,
            resource_id,
            text,
            rules.hash_of(text),
            by.member_id,
            by.user_id,
            by.client_id,
            rules.text_of(terms),
            by.now,
            expires_at,
        )
        record_checksums(audited_action, _TABLE, made)
        await jobs_store.schedule(
            conn, [ScheduledJob(EXPIRE_AUTHORIZATION_REQUEST, request_id, by.customer_id, at=expires_at)]
        )
        await _notify(audited_action, by, f"{by.name} asks for {_DESCRIPTIONS[action]}: a second person confirms it.")
        return await _locked(conn, by.customer_id, request_id, now=by.now)


async def request_rule_change(by: Actor, action: str, rule: Rule, *, current: Rule | None) -> AuthorizationRequestRow:
    """Request that a rule is created, changed or removed; `now_is` is the rule as it stands."""
    change = {"rule": msgspec.to_builtins(rule), "version": None if current is None else current.version}
    return await request_change(by, action, ("approval_rule", rule.rule_id), change=change, terms=ApprovalRequirement())


async def record_decision(
    by: Actor, request_id: UUID, decision: Decision, *, comment: str | None, content_hash: bytes | None = None
) -> AuthorizationRequestRow:
    """Confirm or refuse a change that somebody else requested.

    Raises NotFound, Refused `authorization-request-not-pending`, `content-changed` when the rule
    was changed meanwhile, and as `cast`.
    """
    async with audited_request(by, _RESOURCE, decision.lower(), request_id=request_id) as audited_action:
        conn = audited_action.conn
        found = await _locked(conn, by.customer_id, request_id, now=by.now)
        status = await record_review(audited_action, by, _subject_of(found), decision=decision, comment=comment)
        if content_hash is not None and content_hash != found.content_hash:
            raise Refused("content-changed", "The change is another than the one you read.")
        audited_action.details |= {"change": found.action, "status": status}
        await _move(audited_action, found, status, now=by.now)
        await _notify(audited_action, by, f"{by.name} {decision.lower()} {_DESCRIPTIONS[found.action]}.")
        return await _locked(conn, by.customer_id, request_id, now=by.now)


async def confirm_as_operator(
    pool: Pool, vault: Vault, customer_id: UUID, request_id: UUID, *, now: datetime, wall: datetime
) -> AuthorizationRequestRow:
    """Confirm a change for a team that has no second person. Raises as `decide_change`."""
    async with audit_record.audited(
        pool,
        vault,
        customer_id,
        origin=Origin.operator(),
        action=f"{_RESOURCE}.approved",
        resource=(_RESOURCE, request_id),
        now=wall,
    ) as audited_action:
        found = await _locked(audited_action.conn, customer_id, request_id, now=now)
        if found.status != "PENDING":
            raise Refused(_NOT_PENDING, f"The request is {found.status}.")
        audited_action.details["change"] = found.action
        await _move(audited_action, found, "APPROVED", now=now)
        return await _locked(audited_action.conn, customer_id, request_id, now=now)


async def get_change(
    conn: Connection | Pool, customer_id: UUID, request_id: UUID, *, now: datetime
) -> AuthorizationRequestRow:
    """Return a change as it stands at the bank's `now`. Raises NotFound."""
    row = await conn.fetchrow(_ONE, customer_id, now, request_id)
    if row is None:
        raise NotFound("There is no such authorization request.")
    return _read(row)


async def list_changes(
    conn: Connection | Pool,
    customer_id: UUID,
    place: tuple[datetime, UUID] | None,
    *,
    statuses: list[str] | None,
    actions: list[str] | None,
    now: datetime,
    descending: bool,
    limit: int,
) -> list[AuthorizationRequestRow]:
    """Return up to `limit` changes on from a place, newest first if `descending`."""
    values: list[Any] = [customer_id, now, statuses, actions, limit]
    where = ""
    if place is not None:
        where = f" AND (q.created_at, q.request_id) {'<' if descending else '>'} ($6, $7)"
        values += place
    way = "DESC" if descending else "ASC"
    order = f" ORDER BY q.created_at {way}, q.request_id {way} LIMIT $5"
    return [_read(row) for row in await conn.fetch(_LIST + where + order, *values)]


async def record_applied(
    pool: Pool,
    vault: Vault,
    change: AuthorizationRequestRow,
    *,
    refused: str | None,
    resource_id: UUID | None,
    now: datetime,
    wall: datetime,
) -> None:
    """Record that a change was applied, or which rule refused it, for good."""
    told = {"change": change.action} | ({} if refused is None else {"reason": refused})
    async with audit_record.audited(
        pool,
        vault,
        change.customer_id,
        origin=Origin.system(),
        action=f"{_RESOURCE}.{'applied' if refused is None else 'rejected'}",
        resource=(_RESOURCE, change.request_id),
        now=wall,
        details=told,
    ) as audited_action:
        if not await _note(audited_action, change, now, refused=refused, resource_id=resource_id):
            audited_action.skip()


async def _move(
    audited_action: AuditedAction, change: AuthorizationRequestRow, status: Status, *, now: datetime
) -> None:
    """Record the decision, and apply the change or schedule the job that does."""
    if status == "PENDING":
        return
    conn = audited_action.conn
    moved = await conn.fetch(_MOVE, change.customer_id, change.request_id, status, now)
    record_checksums(audited_action, _TABLE, moved)
    await jobs_store.cancel(conn, EXPIRE_AUTHORIZATION_REQUEST, change.request_id)
    if status != "APPROVED":
        return
    if change.action in RULE_CHANGES:
        await _change_rule(audited_action, change, now)
        await _note(audited_action, change, now)
    else:
        due = ScheduledJob(APPLY_AUTHORIZATION_REQUEST, change.request_id, change.customer_id, at=now)
        await jobs_store.schedule(conn, [due])


async def _note(
    audited_action: AuditedAction,
    change: AuthorizationRequestRow,
    now: datetime,
    *,
    refused: str | None = None,
    resource_id: UUID | None = None,
) -> bool:
    """Record the result of a confirmed change, once; tell whether this was the first time."""
    noted = await audited_action.conn.fetch(
        _APPLIED, change.customer_id, change.request_id, now, refused, resource_id or change.resource_id
    )
    record_checksums(audited_action, _TABLE, noted)
    return bool(noted)


async def _change_rule(audited_action: AuditedAction, change: AuthorizationRequestRow, now: datetime) -> None:
    told = msgspec.json.decode(change.content)["change"]
    rule = msgspec.convert(told["rule"], Rule)
    current = await find_rule(audited_action.conn, change.customer_id, rule.rule_id)
    if told["version"] != (None if current is None else current.version):
        raise Refused("content-changed", "The rule has changed since the request. Send a new request.")
    if change.action == "approval_rule.delete":
        await remove_rule(audited_action, change.customer_id, rule.rule_id)
    else:
        await put_rule(audited_action, change.customer_id, msgspec.structs.replace(rule, updated_at=now))


async def _locked(conn: Connection, customer_id: UUID, request_id: UUID, *, now: datetime) -> AuthorizationRequestRow:
    await conn.execute(_LOCK, customer_id, request_id)
    return await get_change(conn, customer_id, request_id, now=now)


def _subject_of(change: AuthorizationRequestRow) -> Subject:
    return Subject(
        request_id=change.request_id,
        status=change.status,
        content_hash=change.content_hash,
        terms=change.terms,
        named=(),
        user_id=change.user_id,
        client_id=change.client_id,
        needs=rules.MAY_CONFIRM,
        not_pending=_NOT_PENDING,
        affected_member=change.resource_id if change.resource_type == "member" else None,
    )


async def _notify(audited_action: AuditedAction, by: Actor, said: str) -> None:
    await notification_notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind="SECURITY_ALERT",
        title="A sensitive change was asked for or decided",
        description=said,
        metadata={"authorization_request_id": audited_action.resource_id},
        now=by.wall,
        except_user_id=by.user_id,
    )


def _read(row: Record) -> AuthorizationRequestRow:
    told = dict(row)
    told["terms"] = msgspec.json.decode(told["terms"], type=ApprovalRequirement)
    return msgspec.convert(told, AuthorizationRequestRow)
