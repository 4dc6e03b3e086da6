"""Who calls the Customer API: a client, for one customer, and mostly for a member of its team.

Route functions take `member: Member` and `bank: Bank` by name. What is another customer's and what
is nobody's are the same: NotFound.
"""

from __future__ import annotations

from uuid import UUID

from typing_extensions import override

from billfold.access.oauth.types import AccessToken
from billfold.audit.types import Origin
from billfold.http.caller import Call
from billfold.ledger.bank import Bank


class CustomerCaller(Call, frozen=True, kw_only=True):
    """One request with an access token: what the token stands for, and whose customer it is."""

    access: AccessToken

    @property
    @override
    def origin(self) -> Origin:
        """The member who asks through the client, or the client by itself."""
        access = self.access
        return Origin(
            kind="CLIENT" if access.user_id is None else "MEMBER",
            member_id=access.member_id,
            client_id=access.client_id,
            ip_address=self.address,
            user_agent=self.agent,
        )

    @property
    def customer_id(self) -> UUID:
        """Return the one customer the token is for."""
        return self.access.customer_id

    @property
    @override
    def only_customer_id(self) -> UUID:
        """Return the one customer the token is for."""
        return self.access.customer_id

    async def own_pocket(self, bank: Bank, pocket_id: UUID) -> UUID:
        """Return the id when it is a pocket of the customer. Raises NotFound."""
        return (await self.pocket(bank, pocket_id))[1]
