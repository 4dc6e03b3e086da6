"""The pages put together: behind one entrance, in one frame."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from litestar import Litestar, Request, Response
from litestar.di import Provide
from litestar.exceptions import HTTPException, LitestarDeprecationWarning
from litestar.handlers import HTTPRouteHandler
from litestar.middleware import DefineMiddleware

from billfold.access.pages.page_context import PageMiddleware, PageServer, find_page_context, get_page_context
from billfold.access.pages.session import PageContext
from billfold.http.edge.clock_headers import create_clock_headers
from billfold.http.edge.middleware import EdgeMiddleware
from billfold.http.raw_request import raw_request_of
from billfold.http.responses import response_to
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.problems import PROBLEMS

if TYPE_CHECKING:
    from litestar.types import Receive, Send

_HEADINGS = {
    400: "The request cannot be read",
    403: "This is not allowed",
    404: "Not found",
    429: "Too many attempts",
    503: "Temporarily unavailable",
}


def page_routes() -> list[HTTPRouteHandler]:
    """Return the PAGE_ROUTES of every module here, at any depth."""
    here = importlib.import_module(str(__package__))
    names = [each.name for each in pkgutil.walk_packages(here.__path__, f"{__package__}.")]
    return [route for name in names for route in getattr(importlib.import_module(name), "PAGE_ROUTES", ())]


class PagesApp:
    """The pages of one process as an ASGI application."""

    def __init__(self, bank: Bank, server: PageServer) -> None:
        self._clock = create_clock_headers(bank)

        def the_server() -> PageServer:
            return server

        with warnings.catch_warnings():
            # Litestar 3 will want a marker around what a page function asks for by name.
            warnings.simplefilter("ignore", LitestarDeprecationWarning)
            self.router = Litestar(
                route_handlers=page_routes(),
                middleware=[DefineMiddleware(PageMiddleware, server=server)],
                dependencies={
                    "server": Provide(the_server, sync_to_thread=False),
                    "context": Provide(the_context, sync_to_thread=False),
                },
                exception_handlers={Exception: _on_error},
                openapi_config=None,
                logging_config=None,
            )
        self.router.state.page_server = server
        self._edge = EdgeMiddleware(self.router, bank.settings, self._clock)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401
        """Serve one request."""
        await self._edge(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Close the pages at the end."""
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        """Give the connection back."""
        if self._clock is not None:
            await self._clock.close()


def create_pages_app(bank: Bank, *, clock: Callable[[], datetime] = wall_now) -> PagesApp:
    """Return the ASGI application of the pages for one worker. `clock` is wall time."""
    return PagesApp(bank, PageServer(bank, clock))


def the_context(request: Request[Any, Any, Any]) -> PageContext:
    """Return the page context of a request."""
    return get_page_context(request.scope)


def _on_error(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Return the error page. Unexpected errors are logged with their trace."""
    arrival = raw_request_of(request.scope)
    answer = response_to(error, arrival)
    headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
    server: PageServer = request.app.state.page_server
    context = find_page_context(request.scope) or PageContext(arrival, server.csrf_key, server.clock())
    return server.theme.page(
        context,
        "error",
        status=answer.status,
        headers=headers,
        heading=_HEADINGS.get(answer.status, "Something went wrong"),
        sentence=_sentence(error),
        trace_id=arrival.trace_id,
    )


def _sentence(error: Exception) -> str:
    if isinstance(error, InvalidInput):
        return "The form is incomplete. Go back and try again."
    if isinstance(error, BillfoldError) and error.code in PROBLEMS:
        return error.detail
    if isinstance(error, HTTPException):
        return "The address is wrong, or the page no longer exists."
    return "This is our fault, and it was logged. Try again in a moment."
