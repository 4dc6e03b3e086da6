"""A request as it arrived: the bytes that were signed, before any framework has touched them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import litestar
from typing_extensions import override

from billfold.domain import documents
from billfold.interfaces.http.calls import Call
from billfold.kit.errors import BillfoldError
from billfold.ports.files import FileKind

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Receive

BODY_BYTES_MAX = 1024 * 1024
FILE_SECONDS = 120
_ARRIVAL = "arrival"


class Arrival:
    """What is known of one request from its first byte to its last."""

    __slots__ = (
        "body",
        "caller",
        "client",
        "decoded",
        "headers",
        "host",
        "method",
        "path",
        "trace_id",
    )

    def __init__(self, scope: HTTPScope, trace_id: str, client: str) -> None:
        self.trace_id = trace_id
        self.client = client
        """The address of who called, behind trusted proxies."""
        self.method: str = scope["method"]
        self.path: str = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        """The path as sent, still escaped."""
        self.headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            # Two of a kind would be read by one part of the way and signed by another.
            self.headers[name] = b",".join((*filter(None, [self.headers.get(name)]), value))
        self.host = self.headers.get(b"host", b"").decode("latin-1").lower()
        self.body = b""
        self.decoded: Any = None
        self.caller: Call | None = None

    def header(self, name: bytes) -> str | None:
        """Return a header by its lower-case name, as text, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip()


class ArrivedRequest(litestar.Request[Any, Any, Any]):
    """The framework's request, fed with what the door has read already."""

    @override
    async def body(self) -> bytes:
        """Return the bytes of the body."""
        return arrival_of(self.scope).body

    @override
    async def json(self) -> Any:
        """Return the body as the operation declares it, decoded at the door."""
        return arrival_of(self.scope).decoded


def attach(scope: HTTPScope, arrival: Arrival) -> None:
    """Make an arrival known to whoever handles the request later."""
    scope["state"][_ARRIVAL] = arrival


def arrival_of(scope: Any) -> Arrival:  # noqa: ANN401 - any scope of the framework
    """Return the arrival of a request that came through the frame."""
    found: Arrival = scope["state"][_ARRIVAL]
    return found


async def read_body(scope: HTTPScope, receive: Receive, limit: int = BODY_BYTES_MAX) -> bytes:
    """Return the whole body. Raises `payload-too-large` before more than `limit` is in memory."""
    declared = next((v for name, v in scope["headers"] if name == b"content-length"), b"")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise BillfoldError("bad-request", "The connection ended before the body did.")
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_file(scope: HTTPScope, receive: Receive, arrival: Arrival) -> bytes:
    """Return the file that is the body. Raises `unsupported-media-type` before it is read.

    Raises as `read_body` besides, and `bad-request` when it takes too long.
    """
    limit = documents.largest_bytes(kind_in(arrival))
    try:
        async with asyncio.timeout(FILE_SECONDS):
            return await read_body(scope, receive, limit)
    except TimeoutError:
        raise BillfoldError(
            "bad-request", f"The file took longer than {FILE_SECONDS} seconds."
        ) from None


def kind_in(arrival: Arrival) -> FileKind:
    """Return what an upload is declared to be. Raises `unsupported-media-type`."""
    declared = (arrival.header(b"content-type") or "").partition(";")[0].strip().lower()
    try:
        return FileKind(declared)
    except ValueError:
        raise BillfoldError(
            "unsupported-media-type", f"Send a file as one of {', '.join(FileKind)}."
        ) from None


def too_large(limit: int) -> BillfoldError:
    """Return the refusal of a body of more than `limit` bytes."""
    return BillfoldError("payload-too-large", f"The body may have at most {limit:,} bytes.")
