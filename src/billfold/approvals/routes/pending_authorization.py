"""Changes for which a rule requires approval: the response is the authorization request."""

from __future__ import annotations

from uuid import UUID

from billfold.approvals.routes.authorization_requests import render_authorization_requests
from billfold.approvals.routes.principal import principal_of
from billfold.approvals.store import approval_rules, authorization_requests
from billfold.approvals.types import Action
from billfold.http.caller import CustomerCaller
from billfold.http.responses import HttpResponse, json_response
from billfold.ledger.bank import Bank


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
    scopes = sorted(member.access.scopes) if member.access.user_id is None else None
    by = await principal_of(member, bank)
    requested = await authorization_requests.request_change(
        by, action_name, resource, change={**change, "scopes": scopes}, terms=requirement
    )
    return json_response((await render_authorization_requests(bank, [requested]))[0], 202)
