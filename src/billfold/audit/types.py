"""Audit entries: who did what, from where, with which outcome. Instants are wall time."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from billfold.ledger.types import Actor, Origin

Outcome = Literal["SUCCESS", "FAILURE"]


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be recorded: an action is `<resource>.<verb>`, details are small JSON."""

    customer_id: UUID
    origin: Origin
    action: str
    resource_type: str
    resource_id: UUID | str | None = None
    outcome: Outcome = "SUCCESS"
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the log: `entry_no` counts per customer from 1, `details` is JSON as it is kept.

    `hash` is the id of a key and the HMAC of the entry before and of everything here.
    """

    customer_id: UUID
    entry_no: int
    entry_id: UUID
    recorded_at: datetime
    actor: Actor
    member_id: UUID | None
    actor_name: str
    client_id: str | None
    action: str
    resource_type: str
    resource_id: str | None
    outcome: Outcome
    ip_address: str | None
    user_agent: str | None
    details: str
    hash: bytes = b""


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries of a customer to read: from `since` (included) to `until` (not included)."""

    customer_id: UUID
    member_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


class ChainHead(msgspec.Struct, frozen=True, kw_only=True):
    """Where the chain of a customer ended when it was sealed; `hash` in hexadecimal."""

    customer_id: UUID
    entry_no: int
    hash: str


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The ends of all chains that moved since the seal before, as one signed line of JSON.

    `previous` is the SHA-256 of the line before, in hexadecimal; the first has none.
    """

    seal_no: int
    sealed_at: datetime
    previous: str
    heads: tuple[ChainHead, ...]
