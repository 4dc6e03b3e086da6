"""Middleware of all pages: session, origin and CSRF token, and the required authentication.

A page declares who may see it; without that it is for users signed in with both factors.
What changes something comes by POST, from our own origin, with the token of its browser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from billfold.access.pages.session import HOME, PageContext, parse_form
from billfold.access.pages.theme import Theme, page_headers
from billfold.access.partners.password_hashing import PasswordGate
from billfold.access.users import sessions
from billfold.access.users import store as user_store
from billfold.access.users.passkeys import RelyingParty
from billfold.http.limits.rate_limits import count_address
from billfold.http.raw_request import raw_request_of, read_body
from billfold.http.responses import HttpResponse
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

BODY_BYTES_MAX = 64 * 1024
_CONTEXT = "page_context"
RouteOptions = dict[str, Any]

PUBLIC: RouteOptions = {"authentication": "none"}
"""Without authentication."""
FIRST_FACTOR: RouteOptions = {"authentication": "first factor"}
"""For users who presented one factor, or both."""
RECENT_AUTHENTICATION: RouteOptions = {"authentication": "recent"}
"""For users who authenticated within the last five minutes."""


class PageServer:
    """What all pages of one process share."""

    def __init__(self, bank: Bank, clock: Callable[[], datetime] = wall_now) -> None:
        self.bank = bank
        self.clock = clock
        self.theme = Theme()
        self.gate = PasswordGate()
        self.origin = bank.settings.auth_origin
        host = self.origin.removeprefix("https://").partition(":")[0]
        self.site = RelyingParty(host, self.origin)
        self.csrf_key = hashlib.blake2b(bank.seed, person=b"billfold.forms").digest()


class PageMiddleware:
    """The ASGI layer between the router and the pages."""

    def __init__(self, app: ASGIApp, server: PageServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, or redirect to the authentication it needs."""
        server, arrival = self._server, raw_request_of(scope)
        arrival.body = await read_body(arrival, receive, BODY_BYTES_MAX)
        context = PageContext(arrival, server.csrf_key, server.clock())
        scope["state"][_CONTEXT] = context
        context.session = await user_store.find_session(server.bank.pool, context.cookie_hash, context.now)
        if arrival.method == "POST":
            await count_address(server.bank.pool, arrival.client, context.now)
            self._check_form(context)
        handler: Any = scope["route_handler"]
        next_page = _required_step(context, handler.opt.get("authentication", "both factors"), scope)
        if next_page is not None:
            await _redirect(next_page).send(send)
            return
        if context.is_signed_in:
            await sessions.touch_session(server.bank.pool, context.cookie_hash, context.now)
        await self._app(scope, receive, send)

    def _check_form(self, context: PageContext) -> None:
        context.check_origin(self._server.site)
        if context.arrival.header(b"content-type") == "application/json":
            context.check_csrf(context.arrival.header(b"x-csrf"))
            return
        context.form = parse_form(context.arrival)
        context.check_csrf(context.form.pop("csrf", None))


def get_page_context(scope: Any) -> PageContext:  # noqa: ANN401 - a scope of the framework
    """Return the page context of a request that passed the middleware."""
    found: PageContext = scope["state"][_CONTEXT]
    return found


def find_page_context(scope: Any) -> PageContext | None:  # noqa: ANN401 - as above
    """Return the page context of a request, or None when it went wrong before there was one."""
    found: PageContext | None = scope["state"].get(_CONTEXT)
    return found


def _required_step(context: PageContext, required: str, scope: Any) -> str | None:  # noqa: ANN401 - a scope of the framework
    """Return where the visitor has to go before, or None when they may come in."""
    page = None
    if required == "none":
        return None
    if context.session is None:
        page = "/sign-in"
    elif not context.session.complete and required != "first factor":
        page = "/second-factor"
    elif required == "recent" and not context.is_fresh:
        page = "/confirm"
    return None if page is None else f"{page}?next={_next_path(context, scope)}"


def _next_path(context: PageContext, scope: Any) -> str:  # noqa: ANN401 - a scope of the framework
    """Return what the visitor wanted to see; a form is not sent again by itself."""
    if context.arrival.method != "GET":
        return quote(HOME, safe="")
    query = scope["query_string"].decode("latin-1")
    return quote(f"{context.arrival.path}?{query}" if query else context.arrival.path, safe="")


def _redirect(page: str) -> HttpResponse:
    headers = {"location": page, **page_headers()}
    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HttpResponse(303, "text/plain", b"", headers=named)
