"""What an operator sees of each request: its counts, and its line in the access log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from litestar.types import Receive, Send

from billfold.http.edge.middleware import TRACE_ID
from billfold.http.edge.serve import AppWithLifespan
from billfold.http.operations import Operation
from billfold.http.raw_request import find_raw_request
from billfold.platform.clock import monotonic
from billfold.platform.settings.settings import Settings
from billfold.platform.telemetry.metrics import REQUEST_SECONDS, REQUESTS
from billfold.platform.telemetry.tracing import tracing

log = structlog.get_logger(__name__)

DOCUMENTATION, METHODS, UNMATCHED = "documentation", "options_handler", "unmatched"
_TRACE_HEADERS = frozenset({b"traceparent", b"tracestate"})
_SERVER_ERROR = 500
ABORTED = 499
"""What is logged as the status of a request whose client left, or whose response failed, before it began."""


def observed(app: AppWithLifespan, settings: Settings) -> AppWithLifespan:
    """Return an application whose requests are seen as the settings want it: without any, the application itself."""
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

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401 - any scope of ASGI
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

    async def _serve(self, scope: Any, receive: Receive, send: Send) -> int:  # noqa: ANN401 - any scope of ASGI
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


def _describe(span: Any, scope: Any, status: int) -> None:  # noqa: ANN401 - of the library, any scope of ASGI
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


def operation_of(scope: Any) -> str:  # noqa: ANN401 - any scope of ASGI
    """Return by what name a request is counted: its operation, or the function of its page.

    All paths that nothing serves have one name together: strangers choose them.
    """
    route, operation = route_of(scope)
    if operation is not None:
        return operation.name
    if (handler := scope.get("route_handler")) is not None:
        return str(handler.handler_name)
    if route:
        return METHODS
    return DOCUMENTATION if f"{scope['path']}/".startswith("/docs/") else UNMATCHED


def route_of(scope: Any) -> tuple[str, Operation | None]:  # noqa: ANN401 - any scope of ASGI
    """Return the route that took a request, with its parameters unfilled, and its operation; "" for none."""
    return scope.get("path_template", ""), scope.get("operation")


def _attributes(scope: Any, status: int) -> dict[str, object]:  # noqa: ANN401 - any scope of ASGI
    """Return what is logged of a request. The paths of pages hold one-time secrets: only their route is named."""
    route, operation = route_of(scope)
    request = find_raw_request(scope)
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
