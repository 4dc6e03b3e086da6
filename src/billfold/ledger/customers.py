"""The row of a customer, what its status allows, and its entries in the directory."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from billfold.platform.database.rows import Row
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id


class CustomerStatus(StrEnum):
    """PENDING until the first pocket opens; a FROZEN customer only receives."""

    PENDING = "PENDING"
    OPEN = "OPEN"
    FROZEN = "FROZEN"
    CLOSED = "CLOSED"


class Entry(msgspec.Struct, frozen=True):
    """The object of a name, the customer who owns it, and the partner who serves that customer."""

    customer_id: UUID
    object_id: UUID
    partner_id: UUID | None


class DirectoryEntry(Row, frozen=True):
    """The object of an external name, and its owner."""

    table = "directory"

    kind: str
    value: str
    customer_id: UUID
    object_id: UUID


class CustomerRow(Row, frozen=True):
    """A customer as stored. `profile` is JSON text: sealed, a string; `role` is customer, partner or house."""

    table = "customer"

    customer_id: UUID
    partner_id: UUID | None
    role: str
    type: str
    name: str
    account_status: CustomerStatus
    profile: str
    opened_at: datetime
    closed_at: datetime | None = None
    closure_reason: str | None = None
    agreement_version: str | None = None


def profile_reference(customer_id: UUID) -> UUID:
    """Return the id under which commands that replace a profile reference the stored one."""
    return command_id("customer profile", customer_id)


_ACTIVE = frozenset({CustomerStatus.PENDING, CustomerStatus.OPEN})


def require_active(status: str) -> None:
    """Raise Refused customer-not-open for a frozen customer, who can only receive, and for a closed one."""
    if status not in _ACTIVE:
        raise Refused("customer-not-open", f"The customer is {status}.")
