"""What an operator sees of each request: its line in the access log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog

from billfold.http.operations import Operation
from billfold.http.raw_request import find_raw_request
from billfold.platform.clock import monotonic

if TYPE_CHECKING:
    from litestar.types import Receive, Send

    from billfold.http.edge.serve import AppWithLifespan
    from billfold.platform.settings.settings import Settings

log = structlog.get_logger(__name__)

ABORTED = 499
"""What is logged as the status of a request whose client left, or whose response failed, before it began."""


def observed(app: AppWithLifespan, settings: Settings) -> AppWithLifespan:
    """Return an application whose requests are seen as the settings want it: without any, the application itself."""
    return AccessLog(app) if settings.access_log else app


class AccessLog:
    """ASGI: logs each request when its response has ended."""

    def __init__(self, app: AppWithLifespan) -> None:
        self._app = app

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open and close the application."""
        async with self._app.lifespan():
            yield

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401 - any scope of ASGI
        """Serve one request."""
        began, status = monotonic(), ABORTED

        async def noting(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            log.info("request", **_attributes(scope, status), duration_seconds=round(monotonic() - began, 6))


def route_of(scope: Any) -> tuple[str, Operation | None]:  # noqa: ANN401 - any scope of ASGI
    """Return the route that took a request, with its parameters unfilled, and its operation; "" for none."""
    handler = scope.get("route_handler")
    found = None if handler is None else handler.opt.get("operation")
    return scope.get("path_template", ""), found


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
