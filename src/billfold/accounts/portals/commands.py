"""Commands about a portal."""

from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from billfold.ledger.commands import AuditedAction, Command
from billfold.platform.database.rows import Row


class PortalStatus(StrEnum):
    """A closed portal stays closed."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


class Wallet(msgspec.Struct, frozen=True, kw_only=True):
    """A new address on a chain, and its origin: key and index."""

    chain: str
    address: str
    asset: str
    xpub_id: int
    index: int


class PortalRow(Row, frozen=True):
    """A payment identifier of a pocket."""

    table = "portal"
    key_column = "portal_id"
    keeps_former = True

    customer_id: UUID
    portal_id: UUID
    pocket_id: UUID
    type: str
    name: str
    status: PortalStatus
    routing_number: str | None
    account_number: str | None
    network_address: str | None
    payment_rails: list[str]
    chain: str | None
    wallet_address: str | None
    asset: str | None
    xpub_id: int | None
    address_index: int | None
    created_at: datetime
    updated_at: datetime


class OpenPortal(Command, frozen=True, kw_only=True):
    """Open another portal: with `wallet` a crypto portal; else `payment_rails` None means all of the bank's."""

    needs_identifiers = True
    notes_on = ("portal", "portal_id")
    audit = AuditedAction("portal", "created", fields=("pocket_id", "name", "payment_rails"))

    pocket_id: UUID
    name: str
    payment_rails: tuple[str, ...] | None = None
    wallet: Wallet | None = None


class UpdatePortal(Command, frozen=True, kw_only=True):
    """Rename a portal, or close it permanently."""

    needs_identifiers = True
    notes_on = ("portal", "portal_id")
    audit = AuditedAction("portal", lambda c: "closed" if c.close else "updated", fields=("pocket_id", "name"))

    portal_id: UUID
    pocket_id: UUID | None = None
    name: str | None = None
    close: bool = False


class WalletSource(Protocol):
    """Allots addresses, each only once."""

    @property
    def chains(self) -> tuple[str, ...]:
        """The chains for which there are addresses."""

    async def allot(self, chain: str) -> Wallet:
        """Return a new address on one of the chains."""

    def minimum_cents(self, chain: str) -> int | None:
        """Return the smallest deposit that is credited at once, None if the chain is no longer read."""
