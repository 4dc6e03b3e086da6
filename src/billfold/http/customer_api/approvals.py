"""Operations that may need an approval of the team before they change anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from billfold.approvals.types import Action
    from billfold.http.customer_api.member import CustomerCaller
    from billfold.http.responses import HttpResponse
    from billfold.ledger.bank import Bank

MAY_NEED_APPROVAL: dict[str, Any] = {
    "responses": {
        "202": {
            "description": "An approval rule of the team applies: nothing changes before another member approves.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/AuthorizationRequest"}}},
        }
    }
}
"""What such an operation documents besides its own responses."""


class RequestApproval(Protocol):
    """A service of the Customer API: operations take it as the parameter `request_approval`."""

    async def __call__(
        self,
        member: CustomerCaller,
        bank: Bank,
        action: Action,
        action_name: str,
        resource: tuple[str, UUID | None],
        **change: object,
    ) -> HttpResponse | None:
        """Request a change and return the response that says so; None if no rule requires it."""
