"""Sensitive changes: requested by one member, confirmed or denied by another."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from billfold.approvals import authorization_requests
from billfold.approvals.invited_persons import open_contacts
from billfold.approvals.routes.principal import REVIEW_ERRORS, check_recent_authentication, principal_of
from billfold.approvals.schemas import AuthorizationRequest, DecideAuthorization, render_change
from billfold.approvals.store import approval_rules
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS
from billfold.approvals.store.reviews import load_reviews
from billfold.approvals.types import AuthorizationRequestRow
from billfold.data_keys.keys import DataKeys
from billfold.http.operations import get, patch, with_scope
from billfold.http.parameters import OrderedQuery, page_of, texts_among
from billfold.http.responses import HttpResponse, json_response
from billfold.http.schemas import CursorList
from billfold.identity.users.types import Action
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller

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
    action: Annotated[list[str] | None, texts_among("action[]", authorization_requests.ACTIONS)] = None,
) -> CursorList[AuthorizationRequest]:
    """List authorization requests.

    Requested sensitive changes, newest first.
    """
    filters = (status or None, action)
    page = await wanted.read(
        bank,
        AUTHORIZATION_REQUESTS.listed,
        member.customer_id,
        member.now,
        *filters,
        scope=f"authorization-requests:{member.customer_id}",
        filters=filters,
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
    refuses=(*REVIEW_ERRORS, "authorization-request-not-pending"),
)
async def decide_authorization_request(
    member: CustomerCaller, bank: Bank, request_id: UUID, data: DecideAuthorization
) -> AuthorizationRequest:
    """Decide authorization request.

    Approve or deny a change that another member requested. An approved one is applied at once.
    """
    if data.status == "APPROVED":
        await check_recent_authentication(member, bank)
    by = await principal_of(member, bank)
    decided = await authorization_requests.decide(by, request_id, data.verdict)
    if decided.status == "APPROVED" and decided.applied_at is None:
        await authorization_requests.apply_now(bank, decided)
    return await _read(member, bank, request_id)


async def render_authorization_requests(
    bank: Bank, rows: Sequence[AuthorizationRequestRow]
) -> list[AuthorizationRequest]:
    """Return changes as they are shown, with requester and reviews."""
    if not rows:
        return []
    customer_id = rows[0].customer_id
    state = await load_reviews(bank.pool, customer_id, rows, kind=AUTHORIZATION_REQUESTS, vault=bank.vault)
    data_key = (await bank.ports[DataKeys].load(bank.pool, (customer_id,))).get(customer_id)
    return [render_change(open_contacts(bank.vault, row), state, data_key) for row in rows]


async def respond_pending(bank: Bank, requested: AuthorizationRequestRow) -> HttpResponse:
    """Return the response to a change that is requested only: 202 with the authorization request."""
    return json_response((await render_authorization_requests(bank, [requested]))[0], 202)


async def request_approval(
    member: CustomerCaller,
    bank: Bank,
    action: Action,
    action_name: str,
    resource: tuple[str, UUID | None],
    **change: object,
) -> HttpResponse | None:
    """Request a change and return the response that says so; None if no rule requires it."""
    requirement = await approval_rules.requirement_for_change(bank.pool, member.customer_id, action)
    if not requirement.required:
        return None
    by = await principal_of(member, bank)
    requested = await authorization_requests.request_change(by, action_name, resource, change=change, terms=requirement)
    return await respond_pending(bank, requested)


async def _read(member: CustomerCaller, bank: Bank, request_id: UUID) -> AuthorizationRequest:
    row = await AUTHORIZATION_REQUESTS.get(bank.pool, member.customer_id, request_id, now=member.now)
    return (await render_authorization_requests(bank, [row]))[0]
