"""Reviews: one per person and content, recorded by members who may review.

Every review locks the same rows in the same order: the request, then memberships. So the second of
two concurrent reviews sees the first, and a reviewer whose role changes at this moment either still
has the old one or is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.access.team import service_users
from billfold.approvals import rules
from billfold.approvals.store.fingerprints import record_checksums
from billfold.approvals.store.transfer_requests import reviews_of
from billfold.approvals.types import Actor, ApprovalRequirement, Decision, Status
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.access.users.types import Role
    from billfold.audit.record import AuditedAction
    from billfold.platform.database.pool import Connection, Pool

_MEMBERS = """
SELECT m.member_id, m.user_id, m.role, m.changed_at, m.status = 'ACTIVE' AND p.status = 'ACTIVE' AS active
  FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1
   AND (m.member_id = $2
        OR m.user_id IN (SELECT user_id FROM review WHERE customer_id = $1 AND request_id = $3))
 ORDER BY m.member_id FOR SHARE OF m
"""
_VOID = """
UPDATE review SET voided_at = $4
 WHERE customer_id = $1 AND request_id = $2 AND user_id = ANY($3) AND voided_at IS NULL RETURNING *
"""
_RECORD = """
INSERT INTO review (customer_id, request_id, review_no, member_id, user_id, role, member_since,
                    decision, comment, content_hash, created_at)
VALUES ($1, $2, (SELECT coalesce(max(review_no), 0) + 1 FROM review
                  WHERE customer_id = $1 AND request_id = $2),
        $3, $4, $5, $6, $7, $8, $9, $10)
RETURNING *
"""
_VOID_ALL = """
UPDATE review SET voided_at = $3
 WHERE customer_id = $1 AND request_id = $2 AND voided_at IS NULL RETURNING *
"""


class Subject(NamedTuple):
    """A locked request that is decided, and the permission that its reviewers need."""

    request_id: UUID
    status: Status
    content_hash: bytes
    terms: ApprovalRequirement
    named: Sequence[UUID]
    user_id: UUID | None
    client_id: str
    needs: str
    not_pending: str
    affected_member: UUID | None = None
    """The member whose own role is decided: they may not review it."""


class _MemberState(NamedTuple):
    user_id: UUID
    role: Role
    since: datetime


async def users_behind(conn: Connection | Pool, user_id: UUID | None, client_id: str) -> frozenset[UUID]:
    """Return the users behind a requester: the person, or whoever gave a service user its keys."""
    if user_id is not None:
        return frozenset({user_id})
    return await service_users.list_key_owner_ids(conn, client_id)


async def record_review(
    audited_action: AuditedAction, by: Actor, subject: Subject, *, decision: Decision, comment: str | None
) -> Status:
    """Record a review, and return the status of the request after it.

    Raises Refused `self-approval`, `not-a-reviewer`, `forbidden`, `already-reviewed`,
    `approval-out-of-order`, and what the subject calls a request that is decided.
    """
    conn = audited_action.conn
    member_state = await _lock_members(conn, by, subject)
    requesters = await users_behind(conn, subject.user_id, subject.client_id)
    rules.check_reviewer(
        subject.terms,
        by.member_id,
        member_state.role,
        named=subject.named,
        needs=subject.needs,
        is_requester=member_state.user_id in requesters or by.member_id == subject.affected_member,
    )
    if subject.status != "PENDING":
        raise Refused(subject.not_pending, f"The request is {subject.status}.")
    reviews = (await reviews_of(conn, by.customer_id, {subject.request_id: subject.content_hash}))[subject.request_id]
    if any(each.holds and each.user_id == member_state.user_id for each in reviews):
        raise Refused("already-reviewed", "You have decided about this request already.")
    stale = [each.user_id for each in reviews if not each.holds]
    voided = await conn.fetch(_VOID, by.customer_id, subject.request_id, stale, by.now)
    approvals = rules.approvals_in(reviews)
    if decision == "APPROVED":
        rules.check_turn(subject.terms, by.member_id, member_state.role, approvals=approvals)
    recorded = await conn.fetch(
        _RECORD,
        by.customer_id,
        subject.request_id,
        by.member_id,
        member_state.user_id,
        member_state.role,
        member_state.since,
        decision,
        comment,
        subject.content_hash,
        by.now,
    )
    record_checksums(audited_action, "review", [*voided, *recorded])
    return rules.status_after(subject.terms, approvals, decision)


async def void_reviews(audited_action: AuditedAction, by: Actor, request_id: UUID) -> None:
    """Void every review of a request: its content has changed."""
    record_checksums(
        audited_action, "review", await audited_action.conn.fetch(_VOID_ALL, by.customer_id, request_id, by.now)
    )


async def _lock_members(conn: Connection, by: Actor, subject: Subject) -> _MemberState:
    """Lock the memberships of the reviewer and of earlier reviewers until the transaction ends."""
    rows = await conn.fetch(_MEMBERS, by.customer_id, by.member_id, subject.request_id)
    for row in rows:
        if row["member_id"] == by.member_id and row["active"]:
            return _MemberState(row["user_id"], row["role"], row["changed_at"])
    raise Refused("forbidden", "Only an active person of the team decides about requests.")
