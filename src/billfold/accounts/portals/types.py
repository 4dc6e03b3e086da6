"""A portal as stored."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from billfold.platform.database.rows import Row


class PortalStatus(StrEnum):
    """A closed portal stays closed."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


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
    created_at: datetime
    updated_at: datetime
