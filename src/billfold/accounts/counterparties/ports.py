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
    """An account as its bank describes it; `mask` are the last digits of its number.

    One whose verification is pending may have no numbers yet.
    """

    account_id: str
    routing_number: str | None
    account_number: str | None
    account_type: Literal["CHECKING", "SAVINGS"]
    mask: str
    status: LinkStatus


class LinkedInstitution(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts at one institution."""

    institution_name: str | None
    accounts: tuple[LinkedAccount, ...]


class LinkError(Exception):
    """The provider refuses what the caller sent; `field` says what of it."""

    def __init__(
        self, field: Literal["public_token", "accounts", "redirect_uri", "android_package_name"], sentence: str
    ) -> None:
        super().__init__(sentence)
        self.field = field


@runtime_checkable
class LinkingProvider(Protocol):
    """Links accounts at other banks.

    Raises `platform.errors.Unavailable` when it does not answer, and Refused `link-login-required` for a link that
    needs its user.
    """

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
        """Return what opens the provider's pages; with `access` to mend a link there is. Raises LinkError."""

    async def exchange(self, public_token: str) -> str:
        """Return `access`, the secret under which the provider knows the link. Raises LinkError.

        It is called once for a token, unless it raised Unavailable.
        """

    async def accounts(self, access: str, account_ids: list[str]) -> LinkedInstitution:
        """Return the accounts a person chose, in this order. Raises LinkError."""

    async def refresh(self, access: str, account_id: str) -> LinkedAccount:
        """Return an account that was linked before as it is by now. Raises LinkError when there is none any more."""


class OwnWallets(Protocol):
    """Addresses on chains to which no counterparty may point."""

    def is_token(self, address: str) -> bool:
        """Tell whether it is the contract of a token: what is sent there is lost."""

    async def pays_from(self, address: str) -> bool:
        """Tell whether the bank pays from this wallet. Raises Unavailable."""
