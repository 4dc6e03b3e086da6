"""The port of a linking provider: users prove an account by signing in at its own bank."""

from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

import msgspec

LinkStatus = Literal[
    "PENDING_AUTOMATIC_VERIFICATION",
    "PENDING_MANUAL_VERIFICATION",
    "AUTOMATICALLY_VERIFIED",
    "MANUALLY_VERIFIED",
    "VERIFICATION_EXPIRED",
    "VERIFICATION_FAILED",
]


class LinkToken(msgspec.Struct, frozen=True, kw_only=True):
    """What opens the provider's own pages once; good until `expires_at` of the wall clock."""

    token: str
    expires_at: datetime


class LinkedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account as its bank describes it; `mask` are the last digits of its number."""

    account_id: str
    routing_number: str
    account_number: str
    account_type: Literal["CHECKING", "SAVINGS"]
    mask: str
    status: LinkStatus


class LinkedInstitution(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts that were chosen, and the secret under which the provider knows the link."""

    access: str
    institution_name: str | None
    accounts: tuple[LinkedAccount, ...]


class LinkError(Exception):
    """The provider does not know the token or the account; `field` says which of them."""

    def __init__(self, field: Literal["public_token", "accounts"], sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@runtime_checkable
class LinkingProvider(Protocol):
    """Links accounts at other banks. Raises `platform.errors.Unavailable` when it does not answer."""

    async def link_token(
        self,
        *,
        client_name: str,
        user: str,
        now: datetime,
        redirect_uri: str | None = None,
        android_package_name: str | None = None,
        access: str | None = None,
    ) -> LinkToken:
        """Return what opens the provider's pages; with `access` to mend a link there is."""

    async def exchange(self, public_token: str, account_ids: list[str]) -> LinkedInstitution:
        """Return the accounts a person chose, in this order. Raises LinkError."""

    async def status_of(self, access: str, account_id: str) -> LinkStatus:
        """Return how far the verification of a linked account is by now."""
