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
    """The token that opens the provider's own pages once; valid until `expires_at`, wall time."""

    token: str
    expires_at: datetime


class LinkedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account as described by its bank; `mask` is the last digits of its number.

    An account whose verification is pending may have no numbers yet.
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
    """The provider refused the input; `field` is the field that caused it."""

    def __init__(
        self, field: Literal["public_token", "accounts", "redirect_uri", "android_package_name"], sentence: str
    ) -> None:
        super().__init__(sentence)
        self.field = field


@runtime_checkable
class LinkingProvider(Protocol):
    """Links accounts at other banks.

    Raises `platform.errors.Unavailable` if it does not answer, and Refused `link-login-required` for a link whose
    user must sign in again.
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
        """Return a token for the provider's pages; with `access`, to repair an existing link. Raises LinkError."""

    async def exchange(self, public_token: str) -> str:
        """Return `access`, the secret that identifies the link at the provider. Raises LinkError.

        Called once per token, unless it raised Unavailable.
        """

    async def accounts(self, access: str, account_ids: list[str]) -> LinkedInstitution:
        """Return the accounts a person chose, in this order. Raises LinkError."""

    async def refresh(self, access: str, account_id: str) -> LinkedAccount:
        """Return the current state of a linked account. Raises LinkError if it no longer exists."""


class OwnWallets(Protocol):
    """Addresses on chains that no counterparty may use."""

    def is_token(self, address: str) -> bool:
        """Return whether it is the contract of a token: funds sent there are lost."""

    async def pays_from(self, address: str) -> bool:
        """Return whether the bank pays from this wallet. Raises Unavailable."""
