"""Entries of the request log as both APIs return them."""

from typing import Literal
from uuid import UUID

import msgspec

from billfold.http.schemas import WallTime
from billfold.request_log.types import ErrorGroup, LoggedRequest


class RequestLogEntry(msgspec.Struct, kw_only=True):
    """A request. Nothing that was sent or answered is kept of it: of a mistake only where it was.

    `trace_id` is that of the header X-Service-Trace-Id; requests of one trace of yours share it. `path` is the path of
    the operation, with the names of its parameters. `fields` says what a 422 was about, like `body.amount`; a name that
    the operation does not have is `*`.
    On the Customer API `client_id` and `member_id` say who sent it, on the Partner API `user_id`.
    """

    trace_id: str
    timestamp: WallTime
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
    object_type: Literal["RequestLogEntry"] = "RequestLogEntry"


class RequestErrorGroup(msgspec.Struct, kw_only=True):
    """How often an operation answered the same error, and the last time."""

    operation: str
    error_code: str
    count: int
    last: RequestLogEntry
    object_type: Literal["RequestErrorGroup"] = "RequestErrorGroup"


def render_request(row: LoggedRequest) -> RequestLogEntry:
    """Return an entry as the APIs show it."""
    fields = row._asdict()
    del fields["id"], fields["tenant_id"]
    return RequestLogEntry(trace_id=fields.pop("trace_id").hex, timestamp=fields.pop("requested_at"), **fields)


def render_group(group: ErrorGroup) -> RequestErrorGroup:
    """Return a group of errors as the APIs show it."""
    return RequestErrorGroup(
        operation=group.operation, error_code=group.error_code, count=group.count, last=render_request(group.last)
    )
