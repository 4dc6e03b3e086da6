"""Operations on authorization requests and approval rules."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec

from billfold.approvals import authorization_requests, rule_schemas, schemas
from billfold.approvals.authorization_requests import open_contacts
from billfold.approvals.schemas import AuthorizationRequest
from billfold.approvals.store import approval_rules
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS
from billfold.approvals.store.reviews import load_reviews
from billfold.approvals.types import Actor, AuthorizationRequestRow, Rule
from billfold.data_keys.keys import DataKeys
from billfold.http.operations import delete, get, patch, post, with_scope
from billfold.http.parameters import OrderedQuery, page_of, texts_among
from billfold.http.raw_request import in_body
from billfold.http.responses import HttpResponse, ProblemWithHeaders, json_response
from billfold.http.schemas import CursorList
from billfold.identity.members import store
from billfold.identity.users.rules import RECENT_AUTHENTICATION_WINDOW, Action
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform import ids
from billfold.platform.errors import InvalidInput, Refused

REVIEW_ERRORS = (
    "self-approval",
    "not-a-reviewer",
    "insufficient-user-authentication",
    "already-reviewed",
    "approval-out-of-order",
    "content-changed",
)
"""Errors with which a decision about any request may be refused."""


async def principal_of(member: CustomerCaller, bank: Bank) -> Actor:
    """Return the caller as an actor. The authenticator has checked token and role."""
    return Actor(**await actor_fields(member, bank))


async def actor_fields(member: CustomerCaller, bank: Bank) -> dict[str, Any]:
    """Return the fields of `Actor` for a caller."""
    access = member.access
    if access.member_id is None:
        raise Refused("forbidden", "The client does not belong to a team.")
    found = await store.get_member(
        bank.pool, bank.vault, member.customer_id, member_id=access.member_id, now=member.now
    )
    return {
        "pool": bank.pool,
        "vault": bank.vault,
        "customer_id": member.customer_id,
        "member_id": access.member_id,
        "user_id": access.user_id,
        "client_id": access.client_id,
        "role": access.role,
        "scopes": access.scopes,
        "name": found.name,
        "origin": member.origin,
        "now": member.now,
        "business_date": bank.calendars.business_date(member.now),
        "wall": member.wall,
        "confirmation": access.confirmation,
    }


async def check_recent_authentication(member: CustomerCaller, bank: Bank) -> None:
    """Refuse an approval without a recent sign-in.

    Clients of the profile `fapi2` need a token of the last five minutes; others need one if the customer's setting
    requires it, and by default in production. Raises `insufficient-user-authentication` as in RFC 9470.
    """
    access = member.access
    if not access.is_fapi2 and not await approval_rules.requires_step_up(
        bank.pool, member.customer_id, default=bank.settings.is_production
    ):
        return
    if access.auth_time is not None and member.wall - access.auth_time <= RECENT_AUTHENTICATION_WINDOW:
        return
    scheme = "Bearer" if access.jkt is None else "DPoP"
    seconds = int(RECENT_AUTHENTICATION_WINDOW.total_seconds())
    value = (
        f'{scheme} error="insufficient_user_authentication", '
        f'error_description="A more recent authentication is required", max_age="{seconds}"'
    )
    raise ProblemWithHeaders(
        "insufficient-user-authentication",
        f"An approval needs a sign-in within the last {seconds // 60} minutes. Sign in again.",
        (b"www-authenticate", value.encode()),
    )


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

    Returns requested sensitive changes, newest first.
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

    Returns the sensitive change and its reviews.
    """
    return await _read_authorization_request(member, bank, request_id)


@patch(f"{_ONE}status/", WRITES, tag="approvals", refuses=(*REVIEW_ERRORS, "authorization-request-not-pending"))
async def decide_authorization_request(
    member: CustomerCaller, bank: Bank, request_id: UUID, data: schemas.DecideAuthorization
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
    return await _read_authorization_request(member, bank, request_id)


async def render_authorization_requests(
    bank: Bank, rows: Sequence[AuthorizationRequestRow]
) -> list[AuthorizationRequest]:
    """Return changes for display, with requester and reviews."""
    if not rows:
        return []
    customer_id = rows[0].customer_id
    state = await load_reviews(bank.pool, customer_id, rows, kind=AUTHORIZATION_REQUESTS, vault=bank.vault)
    data_key = (await bank.ports[DataKeys].load(bank.pool, (customer_id,))).get(customer_id)
    return [schemas.render_change(open_contacts(bank.vault, row), state, data_key) for row in rows]


async def respond_pending(bank: Bank, requested: AuthorizationRequestRow) -> HttpResponse:
    """Return the response to a change that was only requested: 202 with the authorization request."""
    return json_response((await render_authorization_requests(bank, [requested]))[0], 202)


async def request_approval(
    member: CustomerCaller,
    bank: Bank,
    action: Action,
    action_name: str,
    resource: tuple[str, UUID | None],
    **change: object,
) -> HttpResponse | None:
    """Request a change and return the response for it, or None if no rule requires approval."""
    requirement = await approval_rules.requirement_for_change(bank.pool, member.customer_id, action)
    if not requirement.required:
        return None
    by = await principal_of(member, bank)
    requested = await authorization_requests.request_change(by, action_name, resource, change=change, terms=requirement)
    return await respond_pending(bank, requested)


async def _read_authorization_request(member: CustomerCaller, bank: Bank, request_id: UUID) -> AuthorizationRequest:
    row = await AUTHORIZATION_REQUESTS.get(bank.pool, member.customer_id, request_id, now=member.now)
    return (await render_authorization_requests(bank, [row]))[0]


_RULE_READS = with_scope("approval_rules.read", "approvals")
_RULE_WRITES = with_scope("approval_rules.write", "approvals")
_RULES = "/api/v1/approval-rules/"
_RULE = f"{_RULES}{{rule_id}}/"


@get(_RULES, _RULE_READS, tag="approvals", as_of=True)
async def list_approval_rules(member: CustomerCaller, bank: Bank) -> rule_schemas.ApprovalRules:
    """List approval rules.

    Returns the rules for approving transfers and sensitive changes, oldest first.
    """
    rules = await approval_rules.list_rules(bank.pool, member.customer_id, as_of=member.as_of)
    return rule_schemas.ApprovalRules(items=[rule_schemas.render_rule(each) for each in rules])


@post(_RULES, _RULE_WRITES, tag="approvals", status=202)
async def create_approval_rule(
    member: CustomerCaller, bank: Bank, data: rule_schemas.CreateApprovalRule
) -> AuthorizationRequest:
    """Create approval rule.

    The rule takes effect, as `resource_id`, once another member has confirmed it.
    """
    now = member.now
    rule = Rule(rule_id=ids.new(), created_at=now, updated_at=now, **rule_schemas.rule_fields(data))
    return await _request_rule_change(member, bank, "approval_rule.create", rule=rule, current=None)


@get(_RULE, _RULE_READS, tag="approvals", as_of=True)
async def get_approval_rule(member: CustomerCaller, bank: Bank, rule_id: UUID) -> rule_schemas.ApprovalRule:
    """Get approval rule."""
    return rule_schemas.render_rule(
        await approval_rules.get_rule(bank.pool, member.customer_id, rule_id, as_of=member.as_of)
    )


@patch(_RULE, _RULE_WRITES, tag="approvals", status=202)
async def update_approval_rule(
    member: CustomerCaller, bank: Bank, rule_id: UUID, data: rule_schemas.UpdateApprovalRule
) -> AuthorizationRequest:
    """Update approval rule.

    Another member confirms the change. Earlier requests keep the terms of the previous rule.
    """
    to: dict[str, Any] = rule_schemas.rule_fields(data)
    if not to:
        raise InvalidInput.at("body", msg="names nothing to change")
    found = await approval_rules.get_rule(bank.pool, member.customer_id, rule_id)
    rule = msgspec.structs.replace(found, **to, version=found.version + 1)
    return await _request_rule_change(member, bank, "approval_rule.update", rule=rule, current=found)


@delete(_RULE, _RULE_WRITES, tag="approvals", status=202)
async def delete_approval_rule(member: CustomerCaller, bank: Bank, rule_id: UUID) -> AuthorizationRequest:
    """Delete approval rule.

    Another member confirms the deletion.
    """
    found = await approval_rules.get_rule(bank.pool, member.customer_id, rule_id)
    return await _request_rule_change(member, bank, "approval_rule.delete", rule=found, current=found)


async def _request_rule_change(
    member: CustomerCaller, bank: Bank, action: str, rule: Rule, current: Rule | None
) -> AuthorizationRequest:
    by = await principal_of(member, bank)
    with in_body():
        requested = await authorization_requests.request_rule_change(by, action, rule, current=current)
    return (await render_authorization_requests(bank, [requested]))[0]
