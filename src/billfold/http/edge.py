"""The outermost layer of every application: https only, a trace id, security headers, in a sandbox the bank's time.

Around it, `ObservedApp` counts each request for the operator and writes its line of the access log.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, Protocol

import structlog

from billfold.http.operations import Operation
from billfold.http.raw_request import RAW_REQUEST, AsgiApp, RawRequest, Receive, Scope, Send, has_control
from billfold.http.responses import ProblemWithHeaders, nothing_here, problem, response_to
from billfold.ledger.bank import Bank
from billfold.platform.addresses import network_of, without_port
from billfold.platform.clock import ClockState, monotonic, wall_now
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Pool
from billfold.platform.database.pool import Batcher
from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import BillfoldError
from billfold.platform.settings.settings import Settings
from billfold.platform.telemetry.metrics import REQUEST_SECONDS, REQUESTS
from billfold.platform.telemetry.tracing import tracing

TRACE_HEADER = b"x-service-trace-id"
TRACE_ID = "trace_id"
"""The key in the scope's state of a request that belongs to a trace."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"cache-control", b"no-store"),
)
UNAVAILABLE = 503
CLOSE = (b"connection", b"close")
BODY_PAUSE_SECONDS = 10.0
"""Maximum total time that the server waits for a body, on top of the transfer time of its bytes."""
BODY_BYTES_PER_SECOND = 32 * 1024
"""Minimum transfer rate of a body."""
DROPPED_BYTES_MAX = 16 * 1024 * 1024
DROPPED_SECONDS = 5.0
HTTPS_REQUIRED = "Only https is accepted. Treat everything in this request as disclosed."


BARE = frozenset({"localhost", "127.0.0.1", "[::1]"})


def name_of(host: str) -> str:
    """Return a host without its port: `[::1]:8443` is `[::1]`."""
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def slug_of(host: str, domain: str) -> str | None:
    """Return the partner's label of `{slug}.{domain}`, or None when there is none."""
    name = name_of(host).removesuffix(".")
    suffix = f".{domain}"
    if not name.endswith(suffix):
        return None
    slug = name.removesuffix(suffix)
    return slug if slug and "." not in slug else None


def is_bare(host: str) -> bool:
    """Tell whether a host is this machine and not the name of a partner."""
    return name_of(host) in BARE


class AppWithLifespan(Protocol):
    """An ASGI application with a lifespan."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send, /) -> None:
        """Serve one request."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open it, and close it at the end."""


class EdgeMiddleware:
    """The outermost middleware: no exception leaves it.

    With a `clock` every response shows the bank's time. Only a sandbox has one: its clock may
    differ from the caller's.
    """

    def __init__(self, app: AsgiApp, settings: Settings, clock: ClockHeaders | None = None) -> None:
        self._app = app
        self._clock = clock
        self._proxies = settings.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        peer = (scope.get("client") or ("", 0))[0]
        request = self._request(scope, peer)
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
            if self._is_plain(scope, request, peer):
                clock = None
                await problem("https-required", HTTPS_REQUIRED, request, CLOSE).send(framed)
            else:
                await self._app(_checked(scope, request), body.receive, framed)
        except Exception as error:
            answer = response_to(error, request)
            if not started:
                await answer.send(framed)
            elif answer.status != UNAVAILABLE:
                raise

    def _request(self, scope: Scope, peer: str) -> RawRequest:
        trace_id: str = scope.get("state", {}).get(TRACE_ID) or secrets.token_hex(16)
        request = RawRequest(scope, trace_id, peer)
        if self._proxies:
            request.client = client_of(peer, request.header(b"x-forwarded-for"), self._proxies)
        scope.setdefault("state", {})[RAW_REQUEST] = request
        return request

    def _is_plain(self, scope: Scope, request: RawRequest, peer: str) -> bool:
        """Tell whether the request came over plain http, on its last hop or before a proxy."""
        forwarded = None
        if self._proxies and is_trusted(peer, self._proxies):
            forwarded = request.header(b"x-forwarded-proto")
        return (forwarded or scope["scheme"]) != "https"


@lru_cache(4096)
def is_trusted(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Tell whether an address belongs to a proxy whose forwarded headers are trusted."""
    try:
        # A dual-stack socket shows an IPv4 proxy as ::ffff:10.0.0.1.
        parsed = ip_address(network_of(address)) if "." in address else ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def client_of(peer: str, forwarded_for: str | None, networks: Sequence[IPv4Network | IPv6Network]) -> str:
    """Return the caller's address: the last one on the way that is not a trusted proxy's."""
    if forwarded_for is None or not is_trusted(peer, networks):
        return peer
    for address in reversed([without_port(each.strip()) for each in forwarded_for.split(",")]):
        if not is_trusted(address, networks):
            return address
    return peer


def _secured(headers: Sequence[tuple[bytes, bytes]], request: RawRequest) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with the common headers; cacheable responses set their own cache header."""
    own = dict(headers)
    usual = (each for each in SECURITY_HEADERS if each[0] not in own)
    return [*headers, *usual, (TRACE_HEADER, request.trace_id.encode())]


def _checked(scope: Scope, request: RawRequest) -> Scope:
    """Return the scope as operations accept it. Raises `bad-request`, NotFound."""
    if sum(name == b"host" for name, _ in scope["headers"]) != 1:
        raise BillfoldError("bad-request", "A request must have exactly one host.")
    if has_control(scope["path"]):
        raise nothing_here()
    if request.is_head:
        # Answered like GET, without its body; signature and proof cover the method as sent.
        scope["method"] = "GET"
    return scope


class _Incoming:
    """The incoming body: it may pause for seconds, not for minutes. The unread rest is discarded at the end.

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
        """Pass on the next part. Raises `request-timeout` if it does not arrive in time."""
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
        """Discard the rest, unless it would take too long."""
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
"""Maximum time that an error response waits for the database to tell the bank's time."""

Header = tuple[bytes, bytes]


class ClockHeaders:
    """The clock header of requests that were not admitted."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._batcher: Batcher[None, ClockState | None] = Batcher(self._read)

    async def with_clock(self, headers: Sequence[Header]) -> list[Header]:
        """Return the headers of an answer with the clock's, unless the database is unavailable."""
        if any(name == CLOCK_HEADER for name, _ in headers):
            return [*headers]
        clock = await self._batcher.ask(None)
        return [*headers] if clock is None else [*headers, clock_header(clock, wall_now())]

    async def close(self) -> None:
        """Release the connection."""
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
    """Return the clock header of a sandbox; a bank in production has none."""
    return None if bank.settings.is_production else ClockHeaders(bank.pool)


def clock_header(clock: ClockState, wall: datetime) -> Header:
    """Return the header with the clock's time at a wall time."""
    return CLOCK_HEADER, f"{clock.at(wall):%Y-%m-%dT%H:%M:%S.%f}Z".encode()


DOCUMENTATION, METHODS, UNMATCHED = "documentation", "options_handler", "unmatched"
_TRACE_HEADERS = frozenset({b"traceparent", b"tracestate"})
_SERVER_ERROR = 500
ABORTED = 499
"""Logged as the status when the client disconnected, or the response failed, before it began."""


def observed(app: AppWithLifespan, settings: Settings) -> AppWithLifespan:
    """Return an application whose requests are logged and counted according to the settings; without either, itself."""
    is_seen = settings.access_log or settings.management_port is not None or tracing.is_on
    return ObservedApp(app, log_requests=settings.access_log) if is_seen else app


class ObservedApp:
    """ASGI: counts each request when its response has ended, and logs it."""

    def __init__(self, app: AppWithLifespan, *, log_requests: bool) -> None:
        self._app = app
        self._log_requests = log_requests

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open and close the application."""
        async with self._app.lifespan():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if not tracing.is_on:
            await self._serve(scope, receive, send)
            return
        received = {
            name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _TRACE_HEADERS
        }
        with tracing.span(scope["method"], "SERVER", received=received) as span:
            scope.setdefault("state", {})[TRACE_ID] = tracing.current_ids().get("trace_id")
            _describe(span, scope, await self._serve(scope, receive, send))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Serve one request; return its status."""
        began, status = monotonic(), ABORTED

        async def noting(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            seconds = monotonic() - began
            operation = operation_of(scope)
            REQUESTS.add(operation, str(status))
            REQUEST_SECONDS.observe(seconds, operation)
            if self._log_requests:
                log.info("request", **_attributes(scope, status), duration_seconds=round(seconds, 6))
        return status


def _describe(span: Any, scope: Scope, status: int) -> None:  # noqa: ANN401 - of the library
    """Name the span of a request, which is known once it is served."""
    route, operation = route_of(scope)
    if route:
        span.update_name(f"{scope['method']} {route}")
        span.set_attribute("http.route", route)
    if operation is not None:
        span.set_attribute("billfold.operation", operation.name)
    span.set_attributes({"http.request.method": scope["method"], "http.response.status_code": status})
    span.set_attributes({"url.scheme": "https", "network.protocol.version": scope.get("http_version", "1.1")})
    if status >= _SERVER_ERROR:
        span.set_attribute("error.type", str(status))


def operation_of(scope: Scope) -> str:
    """Return the name under which a request is counted: its operation, or the function of its page.

    All unknown paths share one name, because strangers choose them.
    """
    route, operation = route_of(scope)
    if operation is not None:
        return operation.name
    if (handler := scope.get("route_handler")) is not None:
        return str(handler.handler_name)
    if route:
        return METHODS
    return DOCUMENTATION if f"{scope['path']}/".startswith("/docs/") else UNMATCHED


def route_of(scope: Scope) -> tuple[str, Operation | None]:
    """Return the route that served a request, with its parameters unfilled, and its operation; "" for none."""
    return scope.get("path_template", ""), scope.get("operation")


def _attributes(scope: Scope, status: int) -> dict[str, object]:
    """Return the log fields of a request. The paths of pages hold one-time secrets: only their route is named."""
    route, operation = route_of(scope)
    request: RawRequest | None = scope.get("state", {}).get(RAW_REQUEST)
    named: dict[str, object] = {"http.request.method": scope["method"], "http.response.status_code": status}
    if request is not None:
        named |= {"trace_id": request.trace_id, "client.address": request.client, "server.address": request.host}
        named["http.request.method"] = request.method
        named["user_agent.original"] = (request.header(b"user-agent") or "")[:200]
    if route:
        named["http.route"] = route
    if operation is not None:
        named["billfold.operation"] = operation.name
    if operation is not None or not route:
        named["url.path"] = scope["path"][:500]
    return named
