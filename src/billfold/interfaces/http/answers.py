"""Everything that can go wrong, into the answer that says so.

A broken rule is a problem document, a request of the wrong shape the 422 body with `detail`, a
bug a 500 that tells nothing but its trace id. The log gets the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
import structlog
from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, ValidationException

from billfold.interfaces.http.arrivals import Arrival, arrival_of
from billfold.kit.errors import BillfoldError, Broken, FieldError, InvalidInput, Unavailable
from billfold.kit.problems import PROBLEMS, Problem

if TYPE_CHECKING:
    from litestar.types import Send

log = structlog.get_logger(__name__)

Headers = list[tuple[bytes, bytes]]
PROBLEM = "application/problem+json"
JSON = "application/json"
_BY_STATUS = {
    400: "bad-request",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "payload-too-large",
    415: "unsupported-media-type",
}
_UNKNOWN = Problem("bad-request", 400, "Bad request", "", "")
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode
_KEY = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in full: status, content type, body, and headers beside those of every answer."""

    status: int
    content_type: str
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()

    async def send(self, send: Send) -> None:
        """Send it."""
        headers = [(b"content-type", self.content_type.encode()), *self.headers]
        if self.status not in {204, 304}:
            headers.append((b"content-length", str(len(self.body)).encode()))
        start: Any = {"type": "http.response.start", "status": self.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def as_response(answer: Answer) -> Response[bytes]:
    """Return the framework's form of an answer."""
    return Response(
        answer.body,
        status_code=answer.status,
        media_type=answer.content_type,
        headers={name.decode(): value.decode("latin-1") for name, value in answer.headers},
    )


def nothing() -> Response[None]:
    """Return an answer without a body; the framework would write `null` for None."""
    return Response(cast("None", b""), media_type=MediaType.TEXT)


class Turned(BillfoldError):
    """A refusal at the door that carries headers of its own, such as Retry-After."""

    def __init__(self, code: str, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(code, detail)
        self.headers = headers


def unauthorized(detail: str, error: str | None = "invalid_token") -> Turned:
    """Return the refusal of a token, or of a request without one (`error` None)."""
    value = 'Bearer realm="billfold"' + (f', error="{error}"' if error else "")
    return Turned("unauthorized", detail, (b"www-authenticate", value.encode()))


def answer_to(error: Exception, arrival: Arrival) -> Answer:
    """Return the answer to an error. What nobody foresaw is logged with its trace."""
    if isinstance(error, InvalidInput):
        return invalid(error)
    if isinstance(error, BillfoldError):
        return _refusal(error, arrival)
    if isinstance(error, ValidationException):
        return invalid(_translated(error))
    if isinstance(error, HTTPException) and error.status_code in _BY_STATUS:
        return _framework_refusal(error, arrival)
    log.error(
        "request_broke",
        trace_id=arrival.trace_id,
        method=arrival.method,
        path=arrival.path,
        exc_info=error,
    )
    return problem("internal-error", "Something went wrong on our side.", arrival)


def on_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Answer an error: the exception handler of both APIs."""
    return as_response(answer_to(error, arrival_of(request.scope)))


def invalid(error: InvalidInput) -> Answer:
    """Return the 422 with one entry for each mistake."""
    detail = [{"loc": each.loc, "msg": each.msg, "type": each.type} for each in error.errors]
    return Answer(422, JSON, _encode({"detail": detail}))


def problem(
    code: str, detail: str, arrival: Arrival, *headers: tuple[bytes, bytes], **facts: object
) -> Answer:
    """Return the problem document of a code."""
    known = PROBLEMS.get(code, _UNKNOWN)
    body = {
        **facts,
        "type": f"https://{arrival.host}/docs/errors/{known.code}",
        "title": known.title,
        "status": known.status,
        "detail": detail,
        "instance": arrival.path,
        "code": code,
        "trace_id": arrival.trace_id,
        "retryable": known.retryable,
    }
    return Answer(known.status, PROBLEM, _encode(body), headers)


def _refusal(error: BillfoldError, arrival: Arrival) -> Answer:
    if isinstance(error, Broken):
        log.error("invariant_broken", trace_id=arrival.trace_id, exc_info=error, **error.facts)
        return problem("internal-error", "Something went wrong on our side.", arrival)
    if error.code not in PROBLEMS:
        log.error("problem_not_registered", code=error.code)
    headers: Sequence[tuple[bytes, bytes]] = ()
    if isinstance(error, Turned):
        headers = error.headers
    elif isinstance(error, Unavailable):
        headers = [(b"retry-after", str(error.retry_after_seconds or 1).encode())]
    return problem(error.code, error.detail, arrival, *headers, **error.facts)


def _framework_refusal(error: HTTPException, arrival: Arrival) -> Answer:
    code = _BY_STATUS[error.status_code]
    if error.status_code == 405:  # noqa: PLR2004 - the framework has no name for it
        allow = str((error.headers or {}).get("allow", ""))
        methods = sorted({each.strip() for each in allow.split(",")} - {"OPTIONS", ""})
        detail = f"{arrival.method} is not offered here; {' and '.join(methods)} may be."
        return problem(code, detail, arrival, (b"allow", ", ".join(methods).encode()))
    if error.status_code == 404:  # noqa: PLR2004 - as above
        return problem(code, "There is nothing at this path. /docs/ lists what there is.", arrival)
    return problem(code, error.detail or "The request cannot be read.", arrival)


def _translated(error: ValidationException) -> InvalidInput:
    """Translate what the framework found wrong with path, query and header parameters."""
    extra: Any = error.extra
    found = [_mistake(each) for each in extra] if isinstance(extra, list) else []
    if not found:
        # A parameter that is missing is told only in the sentence.
        name = re.search(r"parameter '([^']+)'", error.detail)
        loc = ("query", name[1]) if name else ("query",)
        found = [FieldError(loc, "is required", "missing")]
    return InvalidInput(found)


def _mistake(entry: dict[str, Any]) -> FieldError:
    parts: tuple[str | int, ...] = tuple(
        int(part) if part.isdigit() else part for part in _KEY.findall(str(entry.get("key", "")))
    )
    source = str(getattr(entry.get("source"), "value", entry.get("source", "query")))
    return FieldError((source, *parts), str(entry.get("message", "is wrong")), "value_error")
