"""Responses, whole or streamed, and the response to each error.

A refusal is a problem document, an invalid request the 422 body with `detail`, a bug a 500 with
only its trace id. The rest goes to the log. Tables as CSV files are written page by page: their length costs no memory.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
import structlog

from billfold.http.parameters import Query
from billfold.http.raw_request import RawRequest, Receive, Send
from billfold.ledger.bank import Bank
from billfold.platform.database.shortage import database_unavailable, error_summary, is_shortage
from billfold.platform.errors import (
    BillfoldError,
    InvalidInput,
    InvariantError,
    NotFound,
    Problem,
    Unavailable,
)
from billfold.platform.problems import PROBLEMS
from billfold.platform.telemetry.metrics import REFUSALS
from billfold.platform.text import Cell, Separators, lines_of

log = structlog.get_logger(__name__)

Header = tuple[bytes, bytes]
Headers = list[Header]
PROBLEM = "application/problem+json"
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
_UNKNOWN = Problem("Bad request", status=400, meaning="", remedy="", code="bad-request")
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode


Row = TypeVar("Row")
ROWS_PER_PAGE = 500
_ROWS_AT_ONCE = 100
CSV_ANSWER: dict[str, Any] = {
    "responses": {"200": {"description": "The file.", "content": {"text/csv": {"schema": {"type": "string"}}}}}
}
"""OpenAPI responses of an operation that returns a CSV file."""
Separated = Annotated[
    Separators,
    Query(description="comma, with a dot in decimals; or semicolon, with a comma in decimals."),
]
"""The parameter of an operation that returns a CSV file."""


class Columns(StrEnum):
    """Of a CSV file: the fields of the API, or what people read."""

    FIELDS = "fields"
    PEOPLE = "people"


ColumnChoice = Annotated[
    Columns,
    Query(name="columns", description="fields, as the API names them; or people, with names, dollars, Eastern time."),
]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response: status, content type, body, and headers besides the common ones."""

    status: int
    content_type: str
    body: bytes = b""
    headers: Sequence[Header] = ()
    about: Mapping[str, object] | None = None
    """The figures behind an error, which are logged and not sent."""

    async def send(self, send: Send, more: Sequence[Header] = ()) -> None:
        """Send it, with `more` headers."""
        length = () if self.status in {204, 304} else ((b"content-length", str(len(self.body)).encode()),)
        await send(_start(self.status, self.content_type, *self.headers, *more, *length))
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def etag_of(body: bytes) -> str:
    """Return the ETag of a body."""
    return f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'


def has_current(request: RawRequest, tag: str) -> bool:
    """Tell whether the client already has the body with this ETag."""
    sent = request.header(b"if-none-match") or ""
    return tag in {each.strip().removeprefix("W/") for each in sent.split(",")}


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """A response whose body is generated while it is sent."""

    content_type: str
    chunks: AsyncIterator[bytes]
    headers: Sequence[Header] = ()

    async def stream(self, receive: Receive, send: Send, more: Sequence[Header] = (), *, is_head: bool = False) -> None:
        """Send it, with `more` headers, until it ends or the client has gone; to HEAD everything but the body."""
        await send(_start(200, self.content_type, *self.headers, *more))
        if is_head:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        tasks = [asyncio.create_task(self._send_body(send)), asyncio.create_task(_gone(receive))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_body(self, send: Send) -> None:
        async for chunk in self.chunks:
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


AnyResponse = HttpResponse | StreamedResponse


def _start(status: int, content_type: str, *headers: Header) -> dict[str, Any]:
    fields = [(b"content-type", content_type.encode()), *headers]
    return {"type": "http.response.start", "status": status, "headers": fields}


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def json_response(value: object, status: int = 200, *headers: Header) -> HttpResponse:
    """Return a value as JSON."""
    return HttpResponse(status, JSON, _encode(value), headers=headers)


def redirect(location: str, status: int = 303) -> HttpResponse:
    """Redirect a browser with 303, so that it does not repeat the POST there (RFC 9700)."""
    return HttpResponse(status, TEXT, b"", headers=[(b"location", location.encode())])


def respond(answer: object, status: int) -> AnyResponse:
    """Return the response for a handler's result: None is a response without a body."""
    if isinstance(answer, AnyResponse):
        return answer
    return HttpResponse(status, TEXT) if answer is None else json_response(answer, status)


class ProblemWithHeaders(BillfoldError):
    """A refusal with additional headers, such as Retry-After."""

    def __init__(self, code: str, detail: str, *headers: Header) -> None:
        super().__init__(code, detail)
        self.headers = headers


def unauthorized(detail: str, error: str | None = "invalid_token") -> ProblemWithHeaders:
    """Return the error for a token, or for a request without one (`error` None)."""
    value = 'Bearer realm="billfold"' + (f', error="{error}"' if error else "")
    return ProblemWithHeaders("unauthorized", detail, (b"www-authenticate", value.encode()))


def response_to(error: Exception, request: RawRequest) -> HttpResponse:
    """Return the response to an error. An unexpected one is logged with its trace."""
    if isinstance(error, InvalidInput):
        return invalid(error)
    if isinstance(error, BillfoldError):
        return replace(_refusal(error, request), about=error.about)
    if is_shortage(error):
        log.warning("database_unavailable", trace_id=request.trace_id, path=request.path, error=error_summary(error))
        return _refusal(database_unavailable(), request)
    log.error("request_failed", trace_id=request.trace_id, method=request.method, path=request.path, exc_info=error)
    return problem("internal-error", "Something went wrong on our side.", request)


def invalid(error: InvalidInput) -> HttpResponse:
    """Return the 422 with one entry per error."""
    REFUSALS.add("validation")
    detail = [{"loc": each.loc, "msg": each.msg, "type": each.type} for each in error.errors]
    return HttpResponse(422, JSON, _encode({"detail": detail}))


def problem(code: str, detail: str, request: RawRequest, *headers: Header, **facts: object) -> HttpResponse:
    """Return the problem document of a code."""
    known = PROBLEMS.get(code, _UNKNOWN)
    REFUSALS.add(known.code)
    body = {
        **facts,
        "type": f"https://{request.host}/docs/errors/{known.code}",
        "title": known.title,
        "status": known.status,
        "detail": detail,
        "instance": request.path,
        "code": code,
        "trace_id": request.trace_id,
        "retryable": known.retryable,
    }
    return HttpResponse(known.status, PROBLEM, _encode(body), headers=headers)


def _refusal(error: BillfoldError, request: RawRequest) -> HttpResponse:
    if isinstance(error, InvariantError):
        log.error("invariant_broken", trace_id=request.trace_id, exc_info=error, **error.facts)
        return problem("internal-error", "Something went wrong on our side.", request)
    if error.code not in PROBLEMS:
        log.error("problem_not_registered", code=error.code)
    headers: Sequence[Header] = ()
    if isinstance(error, ProblemWithHeaders):
        headers = error.headers
    elif isinstance(error, Unavailable):
        headers = [(b"retry-after", str(error.retry_after_seconds or 1).encode())]
    elif seconds := error.facts.get("retry_after_seconds"):
        headers = [(b"retry-after", str(seconds).encode())]
    return problem(error.code, error.detail, request, *headers, **error.facts)


def nothing_here() -> NotFound:
    """Return the refusal of a path that does not exist."""
    return NotFound("There is nothing at this path. /docs/ lists all paths.")


def method_not_allowed(request: RawRequest, methods: Iterable[str]) -> ProblemWithHeaders:
    """Return the refusal of a method that a path does not have."""
    named = sorted(methods)
    detail = f"{request.method} is not allowed here; use {' or '.join(named)}."
    return ProblemWithHeaders("method-not-allowed", detail, (b"allow", ", ".join(named).encode()))


def options_response(methods: Iterable[str]) -> HttpResponse:
    """Return the answer to OPTIONS: the methods of a path."""
    named = {*methods, "OPTIONS"}
    if "GET" in named:
        named.add("HEAD")
    return HttpResponse(204, TEXT, headers=[(b"allow", ", ".join(sorted(named)).encode())])


def csv_stream(
    name: str,
    columns: Sequence[str],
    fetch: Callable[[Bank, Row | None], Awaitable[list[Row]]],
    cells_of: Callable[[Row], Iterable[Cell] | None],
    separators: Separators,
    bank: Bank,
) -> StreamedResponse:
    """Return a file of `name`. `fetch` returns up to ROWS_PER_PAGE rows of a bank after a row, or the first.
    A row without cells is left out.

    Parts are read and written in turns: files wait for each other, and other requests only for a few rows.
    """

    async def part(rows: Sequence[Row]) -> AsyncIterator[bytes]:
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            yield lines_of(filter(None, map(cells_of, rows[start : start + _ROWS_AT_ONCE])), separators)
            await asyncio.sleep(0)

    async def lines() -> AsyncIterator[bytes]:
        yield lines_of([columns], separators)
        last: Row | None = None
        while True:
            async with bank.export_turn:
                rows = await fetch(bank, last)
                written = b"".join([each async for each in part(rows)])
            if rows:
                yield written
            if len(rows) < ROWS_PER_PAGE:
                return
            last = rows[-1]

    disposition = f'attachment; filename="{name}"'
    return StreamedResponse("text/csv; charset=utf-8", lines(), [(b"content-disposition", disposition.encode())])
