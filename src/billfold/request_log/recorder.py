"""Buffers requests for the log: kept in memory for a second, written in batches.

No request waits for it. Entries that do not fit into memory, or cannot be written, are counted and dropped.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec
import structlog
from msgspec import inspect

from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.http.responses import AnyResponse, StreamedResponse
from billfold.platform import ids
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Pool
from billfold.platform.database.shortage import error_summary
from billfold.request_log import store
from billfold.request_log.store import LoggedRequest, Refusal, seal_refusal

NAMES_MAX = 10
UNKNOWN = "*"
"""Replaces a name that the operation does not have."""
_PLACES = frozenset({"body", "query", "path", "header"})
_HEADERS = frozenset({"idempotency-key", "x-service-idempotency", "content-type", "content-encoding", "last-event-id"})


def places_among(known: Collection[str], places: Iterable[list[str | int]]) -> list[str]:
    """Return the locations of errors like `body.amount.value`, without list indexes."""
    texts = ([each for each in place if isinstance(each, str)] for place in places)
    named = (".".join(each if each in known else UNKNOWN for each in place) for place in texts)
    return list(dict.fromkeys(named))[:NAMES_MAX]


def names_of(operation: Operation) -> frozenset[str]:
    """Return every name that an operation declares: fields of its body at any depth, and parameters."""
    in_body = () if operation.body is None else _in_type(inspect.type_info(operation.body), set())
    in_query = (each.name for each in operation.query)
    return frozenset({*_PLACES, *_HEADERS, *operation.path_names, *in_query, *in_body})


def _in_type(info: object, seen: set[int]) -> Iterator[str]:
    """Yield the names of the fields of a type and of all types in it; a type may be recursive."""
    if isinstance(info, list | tuple):
        for each in info:
            yield from _in_type(each, seen)
    elif isinstance(info, inspect.Type | inspect.Field) and id(info) not in seen:
        seen.add(id(info))
        if isinstance(info, inspect.Field):
            yield info.encode_name
        if isinstance(info, inspect.StructType) and info.tag_field:
            yield info.tag_field
        for each in info.__struct_fields__:
            yield from _in_type(getattr(info, each), seen)


log = structlog.get_logger(__name__)

WRITE_SECONDS = 1.0
QUEUED_MAX = 10_000
"""Maximum number of requests that wait to be written."""
QUEUED_OF_TENANT_MAX = 5_000
"""Maximum number of them per tenant."""
REFUSED_PER_MINUTE = 60
"""Maximum number of requests per minute and tenant that are logged though refused before they run.

Their token is known, but their proof is wrong, as that of a stolen token, or there are too many of them.
"""
_FIRST_ERROR, _TOO_MANY = 400, 429
_STREAMED_STATUS = 200
_SERVER_ERROR = 500
REFUSAL_BYTES_MAX = 4_096
"""Maximum length of a response whose text and figures are kept."""
_STANDARD = frozenset({"type", "title", "status", "detail", "instance", "code", "trace_id", "retryable"})
_KEYS = frozenset({b"idempotency-key", b"x-service-idempotency"})
_REPLAYED = b"idempotent-replayed"


class _Mistake(msgspec.Struct):
    loc: list[str | int]


class _ErrorBody(msgspec.Struct):
    """The fields that both forms of an error have in common."""

    code: str = "invalid-input"
    detail: str | list[_Mistake] = ""


class _Outcome(NamedTuple):
    error_code: str | None = None
    places: list[list[str | int]] = []  # noqa: RUF012 - of a tuple, never changed
    is_replayed: bool = False
    refusal: Refusal | None = None


_read_error = msgspec.json.Decoder(_ErrorBody).decode


class RequestRecorder:
    """The requests that one API of one process has yet to write to the log."""

    def __init__(self, pool: Pool, vault: Vault) -> None:
        self._pool = pool
        self._vault = vault
        self._names: dict[str, frozenset[str]] = {}
        self._clear()
        self._refused: Counter[UUID] = Counter()
        self._minute = 0.0
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def record(
        self, operation: Operation, request: RawRequest, response: AnyResponse, *, proven: bool, key: UUID | None = None
    ) -> None:
        """Log a request whose token is known, once; a request without one belongs to nobody."""
        requester, request.requester = request.requester, None
        status = _STREAMED_STATUS if isinstance(response, StreamedResponse) else response.status
        limited = not proven or status == _TOO_MANY
        if requester is None or not self._has_room(requester.tenant_id, refused=limited):
            return
        seconds = monotonic() - request.began_at
        error_code, places, is_replayed, refusal = _outcome(response)
        entry_id = ids.new()
        entry = LoggedRequest(
            id=entry_id,
            **requester._asdict(),
            requested_at=wall_now() - timedelta(seconds=seconds),
            trace_id=UUID(request.trace_id),
            method=request.method,
            path=operation.path,
            operation=operation.name,
            status=status,
            error_code=error_code,
            fields=self._fields(operation, places) if places else [],
            has_idempotency_key=not _KEYS.isdisjoint(request.headers),
            is_replayed=is_replayed,
            ip_address=request.client,
            duration_ms=round(seconds * 1000),
            idempotency_key=key,
            refusal=seal_refusal(self._vault, entry_id, requester.tenant_id, refusal) if refusal and proven else None,
        )
        self._queue.append(entry)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_later())

    async def write(self) -> None:
        """Write pending entries."""
        batch, dropped = self._queue, self._dropped
        self._clear()
        try:
            dropped += await store.add_requests(self._pool, batch)
        except Exception as error:  # noqa: BLE001 - the log is not worth a failure
            dropped += len(batch)
            log.warning("request_log_not_written", error=error_summary(error))
        if dropped:
            log.warning("requests_not_logged", count=dropped)

    async def close(self) -> None:
        """Write pending entries now, after those that are being written."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        await self.write()

    def _fields(self, operation: Operation, places: list[list[str | int]]) -> list[str]:
        if operation.name not in self._names:
            self._names[operation.name] = names_of(operation)
        return places_among(self._names[operation.name], places)

    def _clear(self) -> None:
        self._queue: list[LoggedRequest] = []
        self._of_tenant: Counter[UUID] = Counter()
        self._dropped = 0

    def _has_room(self, tenant_id: UUID, *, refused: bool) -> bool:
        """Tell whether another request of a tenant fits, and count it."""
        fits = len(self._queue) < QUEUED_MAX and self._of_tenant[tenant_id] < QUEUED_OF_TENANT_MAX
        if fits and refused:
            minute = monotonic() // 60
            if minute != self._minute:
                self._minute, self._refused = minute, Counter()
            self._refused[tenant_id] += 1
            fits = self._refused[tenant_id] <= REFUSED_PER_MINUTE
        if fits:
            self._of_tenant[tenant_id] += 1
        else:
            self._dropped += 1
        return fits

    async def _write_later(self) -> None:
        while self._queue or self._dropped:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), WRITE_SECONDS)
            await self.write()


def _outcome(response: AnyResponse) -> _Outcome:
    """Return the code of an error and the locations of its mistakes, and why it was refused if it is short."""
    if isinstance(response, StreamedResponse):
        return _Outcome()
    is_replayed = any(name == _REPLAYED for name, _ in response.headers)
    if response.status < _FIRST_ERROR:
        return _Outcome(is_replayed=is_replayed)
    try:
        body = _read_error(response.body)
    except msgspec.DecodeError:
        return _Outcome("unknown", is_replayed=is_replayed)
    places = [each.loc for each in body.detail] if isinstance(body.detail, list) else []
    refusal = None
    if isinstance(body.detail, str) and response.status < _SERVER_ERROR and len(response.body) <= REFUSAL_BYTES_MAX:
        facts = {name: each for name, each in msgspec.json.decode(response.body).items() if name not in _STANDARD}
        refusal = Refusal(detail=body.detail, facts=facts, about=response.about)
    return _Outcome(body.code, places, is_replayed, refusal)
