"""Sensitive changes: requested by one member, confirmed or denied by another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from billfold.approvals.apply_authorizations import apply_authorization_request
from billfold.approvals.routes.principal import check_recent_authentication, principal_of
from billfold.approvals.schemas import AuthorizationRequest, DecideAuthorization, render_change
from billfold.approvals.store import authorization_requests, transfer_requests
from billfold.approvals.types import AuthorizationRequestRow
from billfold.http.caller import CustomerCaller
from billfold.http.list_params import OrderedQuery, page_of, texts_among
from billfold.http.operations import get, patch, with_scope
from billfold.http.parameters import Query
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank

READS = with_scope("authorization_requests.read", "approvals")
WRITES = with_scope("authorization_requests.write", "approvals")
_ALL = "/api/v1/authorization-requests/"
_ONE = f"{_ALL}{{request_id}}/"
_STATUSES = frozenset({"PENDING", "APPROVED", "DENIED", "EXPIRED"})


@get(_ALL, READS, tag="approvals")
async def list_authorization_requests(
    member: CustomerCaller,
    bank: Bank,
    wanted: OrderedQuery,
    status: Annotated[list[str] | None, texts_among("status[]", _STATUSES)] = None,
    action: Annotated[list[str] | None, Query(name="action[]")] = None,
) -> CursorList[AuthorizationRequest]:
    """List authorization requests.

    Requested sensitive changes, newest first.
    """
    scope = f"authorization-requests:{member.customer_id}"
    filters = {"status": status, "action": action, "descending": wanted.descending}
    page = await wanted.page(
        bank.pager,
        scope,
        filters,
        read=lambda part: authorization_requests.list_changes(
            bank.pool,
            member.customer_id,
            part.dated_place,
            statuses=status or None,
            actions=action,
            now=member.now,
            descending=part.descending,
            limit=part.limit,
        ),
        sort_key_of=lambda row: (row.created_at.isoformat(), str(row.request_id)),
    )
    return page_of(page, await render_authorization_requests(bank, page.items))


@get(_ONE, READS, tag="approvals")
async def get_authorization_request(member: CustomerCaller, bank: Bank, request_id: UUID) -> AuthorizationRequest:
    """Get authorization request.

    The sensitive change and its reviews.
    """
    return await _read(member, bank, request_id)


@patch(
    f"{_ONE}status/",
    WRITES,
    tag="approvals",
    refuses=(
        "self-approval",
        "not-a-reviewer",
        "insufficient-user-authentication",
        "authorization-request-not-pending",
        "already-reviewed",
        "approval-out-of-order",
        "content-changed",
    ),
)
async def decide_authorization_request(
    member: CustomerCaller, bank: Bank, request_id: UUID, data: DecideAuthorization
) -> AuthorizationRequest:
    """Decide authorization request.

    Approve or deny a change that another member requested. An approved one is applied at once.
    """
    if data.status == "APPROVED":
        await check_recent_authentication(member, bank)
    decided = await authorization_requests.record_decision(
        await principal_of(member, bank),
        request_id,
        data.status,
        comment=data.comment,
        content_hash=data.hash_read,
    )
    if decided.status == "APPROVED" and decided.applied_at is None:
        await apply_authorization_request(bank, member.customer_id, request_id)
    return await _read(member, bank, request_id)


async def render_authorization_requests(
    bank: Bank, rows: Sequence[AuthorizationRequestRow]
) -> list[AuthorizationRequest]:
    """Return changes as they are shown, with requester and reviews."""
    if not rows:
        return []
    customer_id = rows[0].customer_id
    reviews_by_request = await transfer_requests.reviews_of(
        bank.pool, customer_id, {row.request_id: row.content_hash for row in rows}
    )
    named = {row.member_id for row in rows}
    named |= {each.member_id for said in reviews_by_request.values() for each in said}
    users = await transfer_requests.members_by_id(bank.pool, customer_id, named)
    return [render_change(row, users, reviews_by_request[row.request_id]) for row in rows]


async def _read(member: CustomerCaller, bank: Bank, request_id: UUID) -> AuthorizationRequest:
    row = await authorization_requests.get_change(bank.pool, member.customer_id, request_id, now=member.now)
    return (await render_authorization_requests(bank, [row]))[0]
