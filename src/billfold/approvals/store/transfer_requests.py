"""Reads of requests, of their reviews and of possible reviewers. One statement each.

A request reads as EXPIRED from `expires_at` on, whether its row says so yet or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.approvals.rules import MAY_APPROVE, may_review
from billfold.approvals.types import (
    DEFAULT_REQUIREMENT,
    Actor,
    ApprovalRequirement,
    Reviewer,
    ReviewRow,
    TransferRequest,
)
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection, Pool

Place = tuple[datetime, UUID]

_IS_OVER = "q.status = 'PENDING' AND q.expires_at <= $2"
_COLUMNS = f"""
SELECT q.customer_id, q.request_id, q.type, q.pocket_id, q.counterparty_id, q.amount, q.content,
       q.content_hash, q.asked, q.member_id, q.user_id, q.client_id, q.reviewers, q.terms,
       CASE WHEN {_IS_OVER} THEN 'EXPIRED' ELSE q.status END AS status,
       CASE WHEN q.status <> 'APPROVED' THEN 'NOT_STARTED'
            WHEN q.reason IS NOT NULL THEN 'REJECTED'
            WHEN 'PENDING' IN (t.status, w.status) THEN 'PROCESSING'
            ELSE coalesce(t.status, w.status, 'NOT_STARTED') END AS execution,
       CASE WHEN q.status = 'APPROVED' THEN coalesce(q.reason, t.reason, w.reason) END AS reason,
       coalesce(w.fee, 0) AS fee, q.created_at, q.updated_at, q.expires_at
  FROM transfer_request q
  LEFT JOIN transfer t ON t.customer_id = q.customer_id AND t.transfer_id = q.request_id
  LEFT JOIN wire w ON w.customer_id = q.customer_id AND w.wire_id = q.request_id
 WHERE q.customer_id = $1
"""
_ONE = f"{_COLUMNS} AND q.request_id = $3"
_LIST = f"""{_COLUMNS}
   AND ($3::text[] IS NULL
        OR CASE WHEN {_IS_OVER} THEN 'EXPIRED' ELSE q.status END = ANY($3))
   AND ($4::text[] IS NULL OR q.type = ANY($4))
   AND ($5::uuid[] IS NULL OR q.pocket_id = ANY($5))
   AND ($6::uuid IS NULL OR q.member_id = $6)
   AND ($7::timestamptz IS NULL OR q.created_at >= $7)
   AND ($8::timestamptz IS NULL OR q.created_at < $8)
   AND ($9::uuid IS NULL OR $9 = ANY(q.reviewers) OR EXISTS (
        SELECT 1 FROM review v WHERE v.customer_id = q.customer_id
           AND v.request_id = q.request_id AND v.member_id = $9))
"""
_LOCK = """
SELECT 1 FROM transfer_request WHERE customer_id = $1 AND request_id = $2 FOR UPDATE
"""
_VOICES = """
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
# A command of ours is in one commit; the journals of that commit are between two links.
_TRANSACTIONS = """
SELECT w.request_id, a.transaction_id
  FROM unnest($2::uuid[], $3::uuid[], $4::uuid[]) AS w(request_id, command_id, pocket_id)
  JOIN command c ON c.customer_id = $1 AND c.command_id = w.command_id
  JOIN chain_entry l ON l.customer_id = $1 AND l.version = c.version
  JOIN chain_entry b ON b.customer_id = $1 AND b.version = c.version - 1
  JOIN transaction a ON a.customer_id = $1 AND a.pocket_id = w.pocket_id
   AND a.entry_no > b.entry_no AND a.entry_no <= l.entry_no
   AND coalesce(a.details ->> 'on_us_transfer_id', a.details ->> 'wire_id') = w.request_id::text
 ORDER BY a.entry_no, a.posting_no
"""


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests are wanted: every None lets everything through. `until` is left out.

    `reviewer` finds requests that name a member as reviewer or that they have reviewed.
    """

    statuses: Sequence[str] | None = None
    types: Sequence[str] | None = None
    pockets: Sequence[UUID] | None = None
    requested_by: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    reviewer: UUID | None = None


async def find_request(
    conn: Connection | Pool, customer_id: UUID, request_id: UUID, *, now: datetime
) -> TransferRequest | None:
    """Return a transfer request of a customer as it stands at the bank's `now`, or None."""
    row = await conn.fetchrow(_ONE, customer_id, now, request_id)
    return None if row is None else _read(row)


async def get_request(
    conn: Connection | Pool, customer_id: UUID, request_id: UUID, *, now: datetime
) -> TransferRequest:
    """Return the same. Raises NotFound."""
    found = await find_request(conn, customer_id, request_id, now=now)
    if found is None:
        raise NotFound("There is no such transfer request.")
    return found


async def lock_request(conn: Connection, by: Actor, request_id: UUID) -> TransferRequest:
    """Return the same, locked until the transaction ends."""
    await conn.execute(_LOCK, by.customer_id, request_id)
    return await get_request(conn, by.customer_id, request_id, now=by.now)


async def list_requests(
    conn: Connection | Pool,
    customer_id: UUID,
    filters: Filters,
    place: Place | None,
    *,
    now: datetime,
    descending: bool,
    limit: int,
) -> list[TransferRequest]:
    """Return up to `limit` transfer requests on from a place, newest first if `descending`."""
    values: list[Any] = [
        customer_id,
        now,
        filters.statuses,
        filters.types,
        filters.pockets,
        filters.requested_by,
        filters.since,
        filters.until,
        filters.reviewer,
        limit,
    ]
    where = ""
    if place is not None:
        where = f" AND (q.created_at, q.request_id) {'<' if descending else '>'} ($11, $12)"
        values += place
    way = "DESC" if descending else "ASC"
    order = f" ORDER BY q.created_at {way}, q.request_id {way} LIMIT $10"
    return [_read(row) for row in await conn.fetch(_LIST + where + order, *values)]


async def reviews_of(
    conn: Connection | Pool, customer_id: UUID, contents: Mapping[UUID, bytes]
) -> dict[UUID, list[ReviewRow]]:
    """Return the reviews of requests, in order; `contents` are ids and current content hashes."""
    reviews: dict[UUID, list[ReviewRow]] = {request_id: [] for request_id in contents}
    rows = await conn.fetch(_VOICES, customer_id, list(contents), list(contents.values()))
    for row in rows:
        reviews[row["request_id"]].append(msgspec.convert(dict(row), ReviewRow))
    return reviews


async def members_by_id(conn: Connection | Pool, customer_id: UUID, member_ids: Iterable[UUID]) -> dict[UUID, Reviewer]:
    """Return these members, users and service users, active or not."""
    rows = await conn.fetch(_MEMBERS, customer_id, list(set(member_ids)))
    return {row["member_id"]: msgspec.convert(dict(row), Reviewer) for row in rows}


async def possible_reviewers(
    conn: Connection | Pool,
    customer_id: UUID,
    *,
    apart_from: Collection[UUID],
    terms: ApprovalRequirement = DEFAULT_REQUIREMENT,
) -> list[Reviewer]:
    """Return the active members who may approve transfers, by name, without some users."""
    users = [msgspec.convert(dict(row), Reviewer) for row in await conn.fetch(_MEMBERS, customer_id, None)]
    return [
        each
        for each in users
        if may_review(terms, each.member_id, each.role, needs=MAY_APPROVE) and each.user_id not in apart_from
    ]


async def transactions_of(
    conn: Connection | Pool, customer_id: UUID, commands: Iterable[tuple[TransferRequest, UUID]]
) -> dict[UUID, list[UUID]]:
    """Return the transactions of requests, each with a command that can have moved its money."""
    pairs = list(commands)
    moved: dict[UUID, list[UUID]] = {request.request_id: [] for request, _ in pairs}
    rows = await conn.fetch(
        _TRANSACTIONS,
        customer_id,
        [request.request_id for request, _ in pairs],
        [command_id for _, command_id in pairs],
        [request.pocket_id for request, _ in pairs],
    )
    for row in rows:
        moved[row["request_id"]].append(row["transaction_id"])
    return moved


def _read(row: Record) -> TransferRequest:
    columns = dict(row)
    columns["terms"] = msgspec.json.decode(columns["terms"], type=ApprovalRequirement)
    return msgspec.convert(columns, TransferRequest)
