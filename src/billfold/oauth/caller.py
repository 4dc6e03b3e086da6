"""An OAuth client of one customer as the caller of an operation."""

from typing import Protocol
from uuid import UUID

from typing_extensions import override

from billfold.http.caller import Call
from billfold.http.responses import HttpResponse
from billfold.identity.users.rules import PERMISSIONS
from billfold.identity.users.types import Action
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.oauth.types import AccessToken


class CustomerCaller(Call, frozen=True, kw_only=True):
    """One request with an access token of the Customer API: for one customer, mostly by a member of its team."""

    access: AccessToken

    @property
    @override
    def origin(self) -> Origin:
        """The member who calls through the client, or the client by itself."""
        access = self.access
        return Origin(
            kind="CLIENT" if access.user_id is None else "MEMBER",
            member_id=access.member_id,
            client_id=access.client_id,
            ip_address=self.address,
            user_agent=self.agent,
        )

    @override
    def may(self, scope: str) -> bool:
        """Tell whether scopes and role both include it."""
        return scope in self.access.scopes and scope in PERMISSIONS[self.access.role]

    @property
    def customer_id(self) -> UUID:
        """The one customer the token is for."""
        return self.access.customer_id

    @property
    @override
    def only_customer_id(self) -> UUID:
        """The same."""
        return self.access.customer_id


class RequestApproval(Protocol):
    """A service of both APIs: operations take it as the parameter `request_approval`."""

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
