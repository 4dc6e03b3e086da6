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
from billfold.approvals.store.fingerprints import prove
from billfold.approvals.store.transfer_requests import voices_about
from billfold.approvals.types import Decision, Principal, Status, Terms
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.access.users.types import Role
    from billfold.audit.record import Deed
    from billfold.platform.database.pool import Connection, Pool

_MEMBERS = """
SELECT m.member_id, m.user_id, m.role, m.changed_at, m.status = 'ACTIVE' AND p.status = 'ACTIVE' AS active
  FROM membership m JOIN person p USING (user_id)
 WHERE m.customer_id = $1
   AND (m.member_id = $2
        OR m.user_id IN (SELECT user_id FROM review WHERE customer_id = $1 AND request_id = $3))
 ORDER BY m.member_id FOR SHARE OF m
"""  # noqa: E501 - one condition
_VOID = """
UPDATE review SET voided_at = $4
 WHERE customer_id = $1 AND request_id = $2 AND user_id = ANY($3) AND voided_at IS NULL RETURNING *
"""
_CAST = """
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
    terms: Terms
    named: Sequence[UUID]
    user_id: UUID | None
    client_id: str
    needs: str
    not_pending: str
    concerned: UUID | None = None
    """The member whose own role is decided: they may not review it."""


class _Standing(NamedTuple):
    user_id: UUID
    role: Role
    since: datetime


async def who_is(conn: Connection | Pool, user_id: UUID | None, client_id: str) -> frozenset[UUID]:
    """Return the users behind a requester: the person, or whoever gave a service user its keys."""
    if user_id is not None:
        return frozenset({user_id})
    return await service_users.keepers_of(conn, client_id)


async def cast(
    doing: Deed, by: Principal, subject: Subject, *, decision: Decision, comment: str | None
) -> Status:
    """Record a review, and return the status of the request after it.

    Raises Refused `self-approval`, `not-a-reviewer`, `forbidden`, `already-reviewed`,
    `approval-out-of-order`, and what the subject calls a request that is decided.
    """
    conn = doing.conn
    standing = await _hold_members(conn, by, subject)
    asked_by = await who_is(conn, subject.user_id, subject.client_id)
    rules.check_reviewer(
        subject.terms, by.member_id, standing.role, named=subject.named, needs=subject.needs,
        is_requester=standing.user_id in asked_by or by.member_id == subject.concerned,
    )  # fmt: skip
    if subject.status != "PENDING":
        raise Refused(subject.not_pending, f"The request is {subject.status}.")
    said = (await voices_about(conn, by.customer_id, {subject.request_id: subject.content_hash}))[
        subject.request_id
    ]
    if any(each.holds and each.user_id == standing.user_id for each in said):
        raise Refused("already-reviewed", "You have decided about this request already.")
    stale = [each.user_id for each in said if not each.holds]
    voided = await conn.fetch(_VOID, by.customer_id, subject.request_id, stale, by.now)
    approvals = rules.approvals_in(said)
    if decision == "APPROVED":
        rules.check_turn(subject.terms, by.member_id, standing.role, approvals=approvals)
    said_now = await conn.fetch(
        _CAST, by.customer_id, subject.request_id, by.member_id, standing.user_id, standing.role,
        standing.since, decision, comment, subject.content_hash, by.now,
    )  # fmt: skip
    prove(doing, "review", [*voided, *said_now])
    return rules.status_after(subject.terms, approvals, decision)


async def void_all(doing: Deed, by: Principal, request_id: UUID) -> None:
    """Void every review of a request: its content has changed."""
    prove(doing, "review", await doing.conn.fetch(_VOID_ALL, by.customer_id, request_id, by.now))


async def _hold_members(conn: Connection, by: Principal, subject: Subject) -> _Standing:
    """Lock the memberships of the reviewer and of earlier reviewers until the transaction ends."""
    rows = await conn.fetch(_MEMBERS, by.customer_id, by.member_id, subject.request_id)
    for row in rows:
        if row["member_id"] == by.member_id and row["active"]:
            return _Standing(row["user_id"], row["role"], row["changed_at"])
    raise Refused("forbidden", "Only an active person of the team decides about requests.")
