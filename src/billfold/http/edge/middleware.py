"""What surrounds every response: https only, a trace id, security headers, in a sandbox the bank's time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import structlog
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from billfold.http.json_syntax import has_control
from billfold.http.raw_request import RawRequest, attach, client_of, is_trusted
from billfold.http.responses import ProblemWithHeaders, nothing_here, problem, response_to
from billfold.ledger.bank import Bank
from billfold.platform import ids
from billfold.platform.clock import ClockState, monotonic, wall_now
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Pool
from billfold.platform.database.pool import Batcher
from billfold.platform.database.shortage import error_summary
from billfold.platform.dates import iso_z
from billfold.platform.errors import BillfoldError
from billfold.platform.settings.settings import Settings

TRACE_HEADER = b"x-service-trace-id"
TRACE_ID = "trace_id"
"""What a scope's state has where the request belongs to a trace."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"cache-control", b"no-store"),
)
UNAVAILABLE = 503
CLOSE = (b"connection", b"close")
BODY_PAUSE_SECONDS = 10.0
"""How long a body may keep the server waiting in all, besides the time that its bytes take."""
BODY_BYTES_PER_SECOND = 32 * 1024
"""How fast a body has to come at least."""
DROPPED_BYTES_MAX = 16 * 1024 * 1024
DROPPED_SECONDS = 5.0
HTTPS_REQUIRED = "Only https is accepted. What this request carried counts as disclosed."


class EdgeMiddleware:
    """The outermost middleware: no exception leaves it.

    With a `clock` every answer says the bank's time. Only a sandbox has one: its clock need
    not show what the caller's does.
    """

    def __init__(self, app: ASGIApp, settings: Settings, clock: ClockHeaders | None = None) -> None:
        self._app = app
        self._clock = clock
        self._proxies = settings.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        http = cast("HTTPScope", scope)
        peer = (scope.get("client") or ("", 0))[0]
        request = self._request(http, peer)
        started = False
        clock = self._clock
        body = _Incoming(receive, request)

        async def framed(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            nonlocal started
            if request.is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            elif message["type"] == "http.response.start":
                started = True
                await body.finish()
                headers = _secured(message["headers"], request)
                message["headers"] = headers if clock is None else await clock.with_clock(headers)
            await send(message)

        try:
            if self._is_plain(http, request, peer):
                clock = None
                await problem("https-required", HTTPS_REQUIRED, request, CLOSE).send(framed)
            else:
                await self._app(_checked(http, request), body.receive, framed)
        except Exception as error:
            answer = response_to(error, request)
            if not started:
                await answer.send(framed)
            elif answer.status != UNAVAILABLE:
                raise

    def _request(self, scope: HTTPScope, peer: str) -> RawRequest:
        trace_id: str = scope.get("state", {}).get(TRACE_ID) or ids.new().hex
        request = RawRequest(scope, trace_id, peer)
        if self._proxies:
            request.client = client_of(peer, request.header(b"x-forwarded-for"), self._proxies)
        attach(scope, request)
        return request

    def _is_plain(self, scope: HTTPScope, request: RawRequest, peer: str) -> bool:
        """Tell whether the request came over plain http, on its last way or before a proxy."""
        forwarded = None
        if self._proxies and is_trusted(peer, self._proxies):
            forwarded = request.header(b"x-forwarded-proto")
        return (forwarded or scope["scheme"]) != "https"


def _secured(headers: Sequence[tuple[bytes, bytes]], request: RawRequest) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with those of every response; what may be cached says so itself."""
    own = dict(headers)
    usual = (each for each in SECURITY_HEADERS if each[0] not in own)
    return [*headers, *usual, (TRACE_HEADER, request.trace_id.encode())]


def _checked(scope: HTTPScope, request: RawRequest) -> HTTPScope:
    """Return the scope of what an operation can take. Raises `bad-request`, NotFound."""
    if sum(name == b"host" for name, _ in scope["headers"]) != 1:
        raise BillfoldError("bad-request", "A request names its host once.")
    if has_control(scope["path"]):
        raise nothing_here()
    if request.is_head:
        # Answered as GET, without its body; what is signed and proven is the method as sent.
        scope["method"] = "GET"
    return scope


class _Incoming:
    """The body on its way in: it may pause for seconds, not for minutes. What is not read is dropped at the end.

    A server that responds while the client still sends must close the connection, and often the client
    would see a broken connection instead of the error.
    """

    __slots__ = ("_ended", "_receive", "_size", "_waited")

    def __init__(self, receive: Receive, request: RawRequest) -> None:
        self._receive = receive
        headers = request.headers
        self._ended = b"transfer-encoding" not in headers and (headers.get(b"content-length", b"0") == b"0")
        self._size = 0
        self._waited = 0.0

    async def receive(self) -> Any:  # noqa: ANN401 - a message of ASGI
        """Pass on the next part. Raises `request-timeout` when it does not come in time."""
        if self._ended:
            return await self._receive()
        began = monotonic()
        try:
            async with asyncio.timeout(BODY_PAUSE_SECONDS + self._size / BODY_BYTES_PER_SECOND - self._waited):
                message: Any = await self._receive()
        except TimeoutError:
            self._ended = True
            raise ProblemWithHeaders("request-timeout", "The body came too slowly.", CLOSE) from None
        self._waited += monotonic() - began
        self._size += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            self._ended = True
        return message

    async def finish(self) -> None:
        """Drop the rest, as far as it is not too much to wait for."""
        if not self._ended:
            try:
                await asyncio.wait_for(self._drop(), DROPPED_SECONDS)
            except (TimeoutError, ProblemWithHeaders):
                return

    async def _drop(self) -> None:
        dropped = 0
        while not self._ended and dropped < DROPPED_BYTES_MAX:
            dropped += len((await self.receive()).get("body", b""))


log = structlog.get_logger(__name__)

CLOCK_HEADER = b"x-service-clock"
CLOCK_TIMEOUT_SECONDS = 1.0
"""How long a refusal waits for a database that does not answer, before it goes without."""

Header = tuple[bytes, bytes]


class ClockHeaders:
    """The clock header of requests that were not admitted."""

    __slots__ = ("_batcher", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._batcher: Batcher[None, ClockState | None] = Batcher(self._read)

    async def with_clock(self, headers: Sequence[Header]) -> list[Header]:
        """Return the headers of an answer with the clock's, unless the database does not answer."""
        if any(name == CLOCK_HEADER for name, _ in headers):
            return [*headers]
        clock = await self._batcher.ask(None)
        return [*headers] if clock is None else [*headers, clock_header(clock, wall_now())]

    async def close(self) -> None:
        """Give the connection back."""
        await self._batcher.settle()

    async def _read(self, batch: Sequence[None]) -> Sequence[ClockState | None]:
        try:
            async with asyncio.timeout(CLOCK_TIMEOUT_SECONDS), self._pool.acquire() as conn:
                clock = await read_clock(conn)
        except Exception as error:  # noqa: BLE001 - an answer goes without it
            log.warning("clock_read_failed", error=error_summary(error))
            clock = None
        return [clock] * len(batch)


def create_clock_headers(bank: Bank) -> ClockHeaders | None:
    """Return what shows the clock of a sandbox; a bank in production shows none."""
    return None if bank.settings.is_production else ClockHeaders(bank.pool)


def clock_header(clock: ClockState, wall: datetime) -> Header:
    """Return the header that says what the clock shows at a wall time."""
    return CLOCK_HEADER, iso_z(clock.at(wall)).encode()
