"""Sensitive changes: asked for by one member, confirmed or refused by another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from billfold.approvals.apply_authorizations import make_change
from billfold.approvals.routes.principal import check_fresh, principal_of
from billfold.approvals.schemas import AuthorizationRequest, DecideAuthorization, render_change
from billfold.approvals.store import authorization_requests, transfer_requests
from billfold.approvals.types import ChangeRequest
from billfold.http.customer_api.member import Member
from billfold.http.limits.rate_groups import APPROVALS
from billfold.http.list_params import OrderedQuery, page_of, texts_among
from billfold.http.operations import get, patch, with_scope
from billfold.http.parameters import Query
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank

READS = with_scope("authorization_requests.read", APPROVALS)
WRITES = with_scope("authorization_requests.write", APPROVALS)
_ALL = "/api/v1/authorization-requests/"
_ONE = f"{_ALL}{{request_id}}/"
_STATUSES = frozenset({"PENDING", "APPROVED", "DENIED", "EXPIRED"})


@get(_ALL, READS, tag="approvals")
async def list_authorization_requests(
    member: Member,
    bank: Bank,
    wanted: OrderedQuery,
    status: Annotated[list[str] | None, texts_among("status[]", _STATUSES)] = None,
    action: Annotated[list[str] | None, Query(name="action[]")] = None,
) -> CursorList[AuthorizationRequest]:
    """List sensitive changes that were asked for, newest first."""
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
        place_of=lambda row: (row.created_at.isoformat(), str(row.request_id)),
    )
    return page_of(page, await shown_changes(bank, page.items))


@get(_ONE, READS, tag="approvals")
async def get_authorization_request(
    member: Member, bank: Bank, request_id: UUID
) -> AuthorizationRequest:
    """Read a sensitive change, and what was said about it."""
    return await _shown(member, bank, request_id)


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
    member: Member, bank: Bank, request_id: UUID, data: DecideAuthorization
) -> AuthorizationRequest:
    """Confirm or refuse a change that somebody else asked for. Confirmed, it is made at once."""
    if data.status == "APPROVED":
        await check_fresh(member, bank)
    decided = await authorization_requests.decide_change(
        await principal_of(member, bank),
        request_id,
        data.status,
        comment=data.comment,
        content_hash=bytes.fromhex(data.content_hash) if data.content_hash else None,
    )
    if decided.status == "APPROVED" and decided.applied_at is None:
        await make_change(bank, member.customer_id, request_id)
    return await _shown(member, bank, request_id)


async def shown_changes(bank: Bank, rows: Sequence[ChangeRequest]) -> list[AuthorizationRequest]:
    """Return changes as they are shown, with who asked and what was said."""
    if not rows:
        return []
    customer_id = rows[0].customer_id
    voices = await transfer_requests.voices_about(
        bank.pool, customer_id, {row.request_id: row.content_hash for row in rows}
    )
    named = {row.member_id for row in rows}
    named |= {each.member_id for said in voices.values() for each in said}
    people = await transfer_requests.people_named(bank.pool, customer_id, named)
    return [render_change(row, people, voices[row.request_id]) for row in rows]


async def _shown(member: Member, bank: Bank, request_id: UUID) -> AuthorizationRequest:
    row = await authorization_requests.get_change(
        bank.pool, member.customer_id, request_id, now=member.now
    )
    return (await shown_changes(bank, [row]))[0]
