"""The request log of a partner or a company: pages, one request, errors in groups."""

import re
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.operations import SIGNED, get, with_scope
from billfold.http.parameters import Limit, ListQuery, Offset, Query, Since, Until, page_of, parse_choice
from billfold.http.raw_request import is_uuid, parse_uuid
from billfold.http.schemas import CursorList, OffsetList, WallTime
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import AnyCaller, CustomerCaller, key_of
from billfold.platform.database.paging import LIMIT_DEFAULT
from billfold.platform.errors import InvalidInput
from billfold.request_log import store
from billfold.request_log.store import ErrorGroup, LoggedRequest, RequestFilter


class RequestLogEntry(msgspec.Struct, kw_only=True):
    """A request. What was sent or returned is not shown: of an error only its location.

    `trace_id` is the value of the header X-Service-Trace-Id; requests in one of your traces share it. `path` is that of
    the operation, with its parameters by name. `fields` locates the errors of a 422, like `body.amount`; a name that
    the operation does not have is `*`.
    On the Customer API `client_id` and `member_id` identify the sender, on the Partner API `user_id`.
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
    """The number of times an operation answered the same error, and the last time."""

    operation: str
    error_code: str
    count: int
    last: RequestLogEntry
    object_type: Literal["RequestErrorGroup"] = "RequestErrorGroup"


def render_request(row: LoggedRequest) -> RequestLogEntry:
    """Return an entry as the APIs show it."""
    fields = row._asdict()
    for name in ("id", "tenant_id", "idempotency_key", "refusal"):
        del fields[name]
    return RequestLogEntry(trace_id=fields.pop("trace_id").hex, timestamp=fields.pop("requested_at"), **fields)


def render_group(group: ErrorGroup) -> RequestErrorGroup:
    """Return a group of errors as the APIs show it."""
    return RequestErrorGroup(
        operation=group.operation, error_code=group.error_code, count=group.count, last=render_request(group.last)
    )


READS = with_scope("team.read", "team")
PATH = "/api/v2/request-log/"
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
_TRACE_ID = re.compile(r"[0-9a-f]{32}")


def _parse_class(name: str, text: str) -> str:
    return parse_choice(STATUS_CLASSES, name, text)


class SpanQuery(msgspec.Struct, frozen=True, kw_only=True):
    """First and last instant of the entries."""

    timestamp_from: Since = None
    timestamp_to: Until = None


class RequestQuery(SpanQuery, frozen=True, kw_only=True):
    """Filters of the list."""

    status: Annotated[
        str | None,
        Query(
            parse=_parse_class,
            schema={"type": "string", "enum": list(STATUS_CLASSES)},
            description="The class of the status of the response.",
        ),
    ] = None
    operation: Annotated[str | None, Query(description="The operationId.")] = None
    error_code: Annotated[str | None, Query(description="The `code` of a problem; `invalid-input` for a 422.")] = None
    idempotency_key: Annotated[str | None, Query(description="The idempotency key that was sent.")] = None


@get(PATH, SIGNED, READS, tag="request-log")
async def list_logged_requests(
    caller: AnyCaller, bank: Bank, wanted: ListQuery, filters: RequestQuery
) -> CursorList[RequestLogEntry]:
    """List requests, newest first.

    A request appears a second or two after its response, and is kept for some days. The log is for debugging: under
    heavy load requests may be missing. Requests whose token is not known are in nobody's log.
    """
    first = None if filters.status is None else int(filters.status[0]) * 100
    listed, values = store.filtered_list(
        RequestFilter(
            tenant_id=request_tenant(caller),
            since=filters.timestamp_from,
            until=filters.timestamp_to,
            operation=filters.operation,
            statuses=None if first is None else (first, first + 100),
            error_code=filters.error_code,
            idempotency_key=None if filters.idempotency_key is None else _key_of(caller, filters.idempotency_key),
        )
    )
    page = await wanted.read(bank, listed, *values, scope="request-log")
    return page_of(page, [render_request(row) for row in page.items])


@get(f"{PATH}errors/", SIGNED, READS, tag="request-log")
async def list_request_errors(
    caller: AnyCaller, bank: Bank, span: SpanQuery, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT
) -> OffsetList[RequestErrorGroup]:
    """List errors by operation and code, most recent first.

    Each comes with its count and the last request. The newest 10,000 errors are counted.
    """
    found = await store.list_error_groups(
        bank.pool, request_tenant(caller), since=span.timestamp_from, until=span.timestamp_to
    )
    items = [render_group(each) for each in found[offset : offset + limit]]
    return OffsetList(offset=offset, count=len(found), items=items)


@get(f"{PATH}{{trace_id}}/", SIGNED, READS, tag="request-log", refuses=("not-found",))
async def get_logged_request(caller: AnyCaller, bank: Bank, trace_id: str) -> RequestLogEntry:
    """Get a request by the trace id of its response; of several in one trace, the newest."""
    if not (_TRACE_ID.fullmatch(trace_id) or is_uuid(trace_id)):
        raise InvalidInput.at(
            "path", "trace_id", msg="must be a trace id of 32 hexadecimal digits", kind="uuid_parsing"
        )
    return render_request(await store.get_request(bank.pool, request_tenant(caller), UUID(trace_id)))


def request_tenant(caller: AnyCaller) -> UUID:
    """Return whose log keeps the caller's requests."""
    return caller.partner_id if isinstance(caller, Caller) else caller.customer_id


def _key_of(caller: AnyCaller, sent: str) -> UUID:
    """Return an idempotency key as it is logged. Raises InvalidInput."""
    if isinstance(caller, CustomerCaller):
        return key_of(caller.customer_id, sent, ("query", "idempotency_key"))
    return parse_uuid("query", "idempotency_key", sent)
