"""A request as it is logged, and filters of the log."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec


class LoggedRequest(NamedTuple):
    """A row of the log, in the order of its columns."""

    id: UUID
    tenant_id: UUID
    requested_at: datetime
    trace_id: UUID
    """That of the caller's trace, if it has one: several requests may share it."""
    method: str
    path: str
    operation: str
    status: int
    error_code: str | None
    fields: list[str]
    has_idempotency_key: bool
    is_replayed: bool
    client_id: str | None
    member_id: UUID | None
    user_id: UUID | None
    ip_address: str
    duration_ms: int


class RequestFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests of a tenant: None is all."""

    tenant_id: UUID
    since: datetime | None = None
    until: datetime | None = None
    operation: str | None = None
    statuses: tuple[int, int] | None = None
    """The first status, and the one after the last."""
    error_code: str | None = None


class ErrorGroup(msgspec.Struct, frozen=True):
    """Errors of one operation with one code."""

    operation: str
    error_code: str
    count: int
    last: LoggedRequest
