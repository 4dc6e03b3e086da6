"""Reviews: one per person and content, recorded by members who may review; and the members themselves.

Every review locks the same rows in the same order: the request, the customer, then memberships. So the second of
two concurrent reviews sees the first, and a reviewer whose role is being changed either still
has the old role or is refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.approvals import rules
from billfold.approvals.store.approval_rules import LOCK, write
from billfold.approvals.store.requests import RequestKind, RequestType
from billfold.approvals.types import (
    Actor,
    AuthorizationRequestRow,
    Reviewer,
    ReviewRow,
    Status,
    StoredRequest,
    Verdict,
)
from billfold.audit.record import AuditedAction
from billfold.identity.members import store
from billfold.identity.users.contact_details import USERS
from billfold.identity.users.rules import Role
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import Refused

_REVIEWS = """
SELECT v.request_id, v.review_no, v.member_id, v.user_id, v.role, v.decision, v.comment,
       v.created_at,
       v.voided_at IS NULL AND v.content_hash = w.content_hash AND m.changed_at = v.member_since
         AND m.status = 'ACTIVE' AND p.status = 'ACTIVE' AS holds
  FROM unnest($2::uuid[], $3::bytea[]) AS w(request_id, content_hash)
  JOIN review v ON v.customer_id = $1 AND v.request_id = w.request_id
  JOIN membership m ON m.customer_id = v.customer_id AND m.user_id = v.user_id
  JOIN user_account p ON p.user_id = v.user_id
 ORDER BY v.request_id, v.review_no
"""
_MEMBERS = """
SELECT m.member_id, m.user_id, p.first_name, p.last_name, p.email, m.role
  FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1 AND ($2::uuid[] IS NULL OR m.member_id = ANY($2))
   AND ($2 IS NOT NULL OR (m.status = 'ACTIVE' AND p.status = 'ACTIVE'))
 UNION ALL
SELECT c.member_id, NULL, c.name, '', NULL, 'SERVICE'
  FROM oauth_client c WHERE c.customer_id = $1 AND c.member_id = ANY($2)
 ORDER BY 3, 4, 1
"""
_SERVICE_USERS = """
SELECT c.member_id, NULL::uuid AS user_id, c.name AS first_name, '' AS last_name, NULL::text AS email, 'SERVICE' AS role
  FROM oauth_client c WHERE c.customer_id = $1 AND c.revoked_at IS NULL ORDER BY c.name, c.member_id
"""
_ROLES = """
SELECT m.member_id, m.role FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1 AND m.member_id = ANY($2) AND m.status = 'ACTIVE' AND p.status = 'ACTIVE'
 UNION ALL
SELECT c.member_id, 'SERVICE' FROM oauth_client c
 WHERE c.customer_id = $1 AND c.member_id = ANY($2) AND c.revoked_at IS NULL
"""
_LOCK_MEMBERS = """
SELECT m.member_id, m.user_id, m.role, m.changed_at, m.status = 'ACTIVE' AND p.status = 'ACTIVE' AS active
  FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1
   AND (m.member_id IN ($2, $4)
        OR m.user_id IN (SELECT user_id FROM review WHERE customer_id = $1 AND request_id = $3))
 ORDER BY m.member_id FOR SHARE OF m
"""
_VOID = """
UPDATE review SET voided_at = $3
 WHERE customer_id = $1 AND request_id = $2 AND voided_at IS NULL
   AND ($4::uuid[] IS NULL OR user_id = ANY($4)) RETURNING *
"""
_RECORD = """
INSERT INTO review (customer_id, request_id, review_no, member_id, user_id, role, member_since,
                    decision, comment, content_hash, created_at)
SELECT $1, $2, coalesce(max(review_no), 0) + 1, $3, $4, $5, $6, $7, $8, $9, $10
  FROM review WHERE customer_id = $1 AND request_id = $2
RETURNING *
"""


class _MemberState(NamedTuple):
    user_id: UUID
    role: Role
    since: datetime


async def users_behind(conn: Db, user_id: UUID | None, client_id: str) -> frozenset[UUID]:
    """Return the users behind a requester: the person, or those who registered a service user's keys."""
    if user_id is not None:
        return frozenset({user_id})
    return await store.list_key_owner_ids(conn, client_id)


async def record_review(
    audited_action: AuditedAction, by: Actor, request: RequestType, *, kind: RequestKind[RequestType], verdict: Verdict
) -> Status:
    """Record the review of a locked request, and return the status of the request after it.

    Raises Refused `self-approval`, `not-a-reviewer`, `forbidden`, `already-reviewed`,
    `approval-out-of-order`, `content-changed`, and the code of its kind for a request that is decided.
    """
    conn, terms = audited_action.conn, request.terms
    await conn.execute(LOCK, by.customer_id)
    member_state = await _lock_members(conn, by, request)
    requesters = await users_behind(conn, request.user_id, request.client_id)
    rules.check_reviewer(
        terms,
        by.member_id,
        member_state.role,
        named=request.reviewers,
        needs=kind.needs,
        is_requester=member_state.user_id in requesters or by.member_id == request.affected_member,
    )
    kind.check_pending(request)
    key = (by.customer_id, request.request_id)
    reviews = (await reviews_of(conn, by.customer_id, [request]))[request.request_id]
    if any(each.holds and each.user_id == member_state.user_id for each in reviews):
        raise Refused("already-reviewed", "You have decided about this request already.")
    stale = [each.user_id for each in reviews if not each.holds]
    await write(audited_action, "review", _VOID, *key, by.now, stale)
    approvals = rules.approvals_in(reviews)
    if verdict.decision == "APPROVED":
        rules.check_turn(terms, by.member_id, member_state.role, approvals=approvals)
    rules.check_content(verdict, request)
    rules.check_confirmed(by.confirmation, request, verdict.decision)
    if by.confirmation is not None:
        kept = {"decision": verdict.decision, "content_hash": request.content_hash.hex()}
        audited_action.details["confirmation"] = msgspec.to_builtins(by.confirmation) | kept
    review = (verdict.decision, verdict.comment, request.content_hash, by.now)
    await write(audited_action, "review", _RECORD, *key, by.member_id, *member_state, *review)
    return rules.status_after(terms, approvals, verdict.decision)


async def void_reviews(audited_action: AuditedAction, by: Actor, request_id: UUID) -> None:
    """Void every review of a request because its content has changed."""
    await write(audited_action, "review", _VOID, by.customer_id, request_id, by.now, None)


async def reviews_of(conn: Db, customer_id: UUID, requests: Sequence[StoredRequest]) -> dict[UUID, list[ReviewRow]]:
    """Return the reviews of requests by their ids, in order."""
    reviews: dict[UUID, list[ReviewRow]] = {each.request_id: [] for each in requests}
    hashes = [each.content_hash for each in requests]
    for row in await conn.fetch(_REVIEWS, customer_id, list(reviews), hashes):
        reviews[row["request_id"]].append(msgspec.convert(dict(row), ReviewRow))
    return reviews


class ReviewState(NamedTuple):
    """The rows read with requests, by request id: reviews, and why a request can never be approved.

    `users` are all members that requests and reviews name, by the members' ids.
    """

    reviews: Mapping[UUID, Sequence[ReviewRow]]
    users: Mapping[UUID, Reviewer]
    blockers: Mapping[UUID, str]


async def load_reviews(
    conn: Db, customer_id: UUID, requests: Sequence[RequestType], *, kind: RequestKind[RequestType], vault: Vault
) -> ReviewState:
    """Return the reviews of requests of one kind, and the data shown with them."""
    reviews = await reviews_of(conn, customer_id, requests)
    named = {member_id for each in requests for member_id in (each.member_id, *each.reviewers)}
    named |= {each.member_id for given in reviews.values() for each in given}
    users = {each.member_id: each for each in open_addresses(vault, await _list_members(conn, customer_id, named))}
    return ReviewState(reviews, users, await _find_blockers(conn, customer_id, requests, reviews=reviews, kind=kind))


async def find_blockers(
    conn: Db, customer_id: UUID, requests: Sequence[RequestType], *, kind: RequestKind[RequestType]
) -> dict[UUID, str]:
    """Return why requests can never be approved, by their ids; those that can be approved are omitted."""
    reviews = await reviews_of(conn, customer_id, requests)
    return await _find_blockers(conn, customer_id, requests, reviews=reviews, kind=kind)


async def _find_blockers(
    conn: Db,
    customer_id: UUID,
    requests: Sequence[RequestType],
    *,
    reviews: Mapping[UUID, Sequence[ReviewRow]],
    kind: RequestKind[RequestType],
) -> dict[UUID, str]:
    pending = [each for each in requests if each.status == "PENDING"]
    team = await _list_members(conn, customer_id, None) if pending else []
    requesters = {(each.user_id, each.client_id) for each in pending}
    behind = {requester: await users_behind(conn, *requester) for requester in requesters}
    blockers = await find_requester_blockers(conn, customer_id, pending)
    for each in pending:
        approved = {row.user_id for row in reviews[each.request_id] if row.holds and row.decision == "APPROVED"}
        apart = approved | behind[each.user_id, each.client_id]
        others = [user for user in team if user.user_id not in apart and user.member_id != each.affected_member]
        able = rules.find_candidates(others, each.terms, named=each.reviewers, needs=kind.needs)
        blocker = rules.find_blocker(each.terms, able, approvals=len(approved))
        if blocker is not None:
            blockers.setdefault(each.request_id, blocker)
    return blockers


async def find_requester_blockers(conn: Db, customer_id: UUID, requests: Iterable[StoredRequest]) -> dict[UUID, str]:
    """Return the transfers and batches whose requester may no longer make them, by id, with the reason.

    Sensitive changes are checked for that when they are applied.
    """
    transfers = [each for each in requests if not isinstance(each, AuthorizationRequestRow)]
    rows = await conn.fetch(_ROLES, customer_id, [each.member_id for each in transfers]) if transfers else []
    roles: dict[UUID, Role] = {row["member_id"]: row["role"] for row in rows}
    found = {each.request_id: rules.find_requester_blocker(roles.get(each.member_id)) for each in transfers}
    return {request_id: blocker for request_id, blocker in found.items() if blocker is not None}


async def list_other_members(conn: Db, customer_id: UUID, *, than: Collection[UUID]) -> list[Reviewer]:
    """Return the active users of a team by name, except `than`; their addresses are as stored."""
    return [each for each in await _list_members(conn, customer_id, None) if each.user_id not in than]


async def list_team(conn: Db, customer_id: UUID) -> list[Reviewer]:
    """Return the active users of a team by name, then its service users, which request and never approve."""
    programs = [msgspec.convert(dict(row), Reviewer) for row in await conn.fetch(_SERVICE_USERS, customer_id)]
    return [*await _list_members(conn, customer_id, None), *programs]


def open_addresses(vault: Vault, members: Iterable[Reviewer]) -> list[Reviewer]:
    """Return members with their e-mail addresses decrypted."""
    return [
        each
        if each.user_id is None
        else msgspec.convert(USERS.open(vault, each.user_id, msgspec.structs.asdict(each)), Reviewer)
        for each in members
    ]


async def _list_members(conn: Db, customer_id: UUID, member_ids: Iterable[UUID] | None) -> list[Reviewer]:
    """Return these members, users and service users, active or not; for None, all active users."""
    rows = await conn.fetch(_MEMBERS, customer_id, None if member_ids is None else list(member_ids))
    return [msgspec.convert(dict(row), Reviewer) for row in rows]


async def _lock_members(conn: Connection, by: Actor, request: StoredRequest) -> _MemberState:
    """Lock the memberships of the reviewer and of earlier reviewers until the transaction ends."""
    rows = await conn.fetch(_LOCK_MEMBERS, by.customer_id, by.member_id, request.request_id, request.member_id)
    for row in rows:
        if row["member_id"] == by.member_id and row["active"]:
            return _MemberState(row["user_id"], row["role"], row["changed_at"])
    raise Refused("forbidden", "Only an active person of the team decides about requests.")
