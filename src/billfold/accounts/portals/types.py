"""A portal as stored."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from billfold.platform.database.rows import Row


class PortalStatus(StrEnum):
    """A closed portal stays closed."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


class Wallet(msgspec.Struct, frozen=True, kw_only=True):
    """An address on a chain that was never given out, and where it comes from: key and index."""

    chain: str
    address: str
    asset: str
    xpub_id: int
    index: int


class PortalRow(Row, frozen=True):
    """A payment identifier of a pocket."""

    table = "portal"
    key_column = "portal_id"

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
