"""A user of a partner as the caller of an operation."""

from uuid import UUID

from typing_extensions import override

from billfold.http.caller import Call
from billfold.ledger.types import Origin


class Caller(Call, frozen=True, kw_only=True):
    """One request of a partner: who, and on whose behalf."""

    partner_slug: str
    user_id: UUID
    own_customer_id: UUID

    @property
    @override
    def origin(self) -> Origin:
        """The partner, and its user."""
        return Origin(
            kind="PARTNER", name=self.partner_slug, client_id=self.name, ip_address=self.address, user_agent=self.agent
        )

    @property
    @override
    def key_owner(self) -> str:
        """The partner, whichever of its users calls."""
        return f"partner:{self.partner_id}"
