"""The application of the pages: routes, middleware, files and error pages.

A page declares who may see it; the default is users signed in with both factors.
Changes are made by POST, from our own origin, with the browser's token.
"""

import importlib
import pkgutil
import re
import warnings
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from litestar import Litestar, Request, Response, get
from litestar.di import Provide
from litestar.exceptions import HTTPException, LitestarDeprecationWarning
from litestar.handlers import HTTPRouteHandler
from litestar.middleware import DefineMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from billfold.apis.customer_api import CustomerApi
from billfold.apis.partner_api import PartnerApi
from billfold.http.counts import count_address
from billfold.http.edge import EdgeMiddleware, create_clock_headers
from billfold.http.raw_request import RawRequest, is_file_form, raw_request_of, read_body
from billfold.http.responses import (
    HttpResponse,
    etag_of,
    has_current,
    method_not_allowed,
    nothing_here,
    options_response,
    response_to,
)
from billfold.identity.users import sessions, store
from billfold.ledger.bank import Bank
from billfold.oauth.server.app import error_facts
from billfold.pages.fonts import web_font
from billfold.pages.theme import MEDIA_TYPES, page_headers
from billfold.platform.clock import wall_now
from billfold.platform.database.shortage import patiently
from billfold.platform.errors import BillfoldError, NotFound
from billfold.web.console.partner import partner_of
from billfold.web.console.team import company_of, in_bank, own_shell, team_of
from billfold.web.page_context import ACCOUNT, PUBLIC, PageContext, PageResponse, PageServer, parse_form
from billfold.web.team.members import page_administrator

BODY_BYTES_MAX = 64 * 1024
_CONTEXT = "page_context"
_BY_STATUS = {
    400: "bad-request",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "payload-too-large",
    415: "unsupported-media-type",
}
_WRONG_ADDRESS = "The address is wrong, or the page no longer exists."


def page_routes(package: str) -> list[HTTPRouteHandler]:
    """Return the route functions of every module of a package, at any depth."""
    here = importlib.import_module(package)
    names = [each.name for each in pkgutil.walk_packages(here.__path__, f"{package}.")]
    found = [each for name in names for each in vars(importlib.import_module(name)).values()]
    return [each for each in found if isinstance(each, HTTPRouteHandler)]


class PageMiddleware:
    """Finds the session, checks forms, and redirects to the authentication that a page requires."""

    def __init__(self, app: ASGIApp, server: PageServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, or redirect to the authentication it needs."""
        raw, pool = raw_request_of(scope), self._server.bank.pool
        if raw.method == "OPTIONS":
            await _methods_of(scope).send(send)
            return
        if raw.method == "POST":
            await count_address(pool, raw.client, self._server.clock())
        handler: Any = scope["route_handler"]
        takes_file = handler.opt.get("takes_file", False) and is_file_form(raw)
        if not takes_file:
            raw.body = await read_body(raw, receive, handler.opt.get("body_bytes_max", BODY_BYTES_MAX))
        raw.check_encoding()
        page = scope["state"][_CONTEXT] = PageContext(self._server, raw, receive)
        page.session = await patiently(lambda: store.find_session(pool, page.vault, page.cookie_hash, now=page.now))
        if raw.method == "POST":
            page.check_origin()
            if not takes_file:
                _check_form(page)
        next_page = _required_step(page, handler.opt.get("authentication", "both factors"))
        if next_page is not None:
            await _redirect(next_page).send(send)
            return
        if page.is_signed_in:
            await sessions.touch_session(pool, page.cookie_hash, page.now)
        await self._app(scope, receive, send)


class PagesApp:
    """The pages of some packages as an ASGI application; `given` are the parameters of page functions by name."""

    def __init__(self, packages: Collection[str], given: Mapping[str, Provide]) -> None:
        self._server = PageServer(packages)
        with warnings.catch_warnings():
            # Litestar 3 will require a marker around parameters that a page function takes by name.
            warnings.simplefilter("ignore", LitestarDeprecationWarning)
            self.router = Litestar(
                route_handlers=list({id(route): route for each in packages for route in page_routes(each)}.values()),
                middleware=[DefineMiddleware(PageMiddleware, server=self._server)],
                dependencies={"page": Provide(the_page, sync_to_thread=False), **given},
                exception_handlers={Exception: _on_error},
                openapi_config=None,
                logging_config=None,
            )
        self.router.state.page_server = self._server

    def open_bank(self, bank: Bank, clock: Callable[[], datetime] = wall_now) -> None:
        """Connect the pages to a bank; `clock` is wall time."""
        self._server.open_bank(bank, clock)
        self._clock = create_clock_headers(bank)
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
        """Release the connection."""
        if self._clock is not None:
            await self._clock.close()


def the_page(request: Request[Any, Any, Any]) -> PageContext:
    """Return the page context of a request that passed the middleware."""
    found: PageContext = request.scope["state"][_CONTEXT]
    return found


_KEPT = "public, max-age=31536000, immutable"


@get(["/files/{name:str}", "/files/{version:str}/{name:str}"], opt=PUBLIC)
async def show_file(name: str, page: PageContext, version: str = "") -> PageResponse:
    """Show a file of the pages. A browser keeps that of our version; any other is asked for again.

    While servers of two releases run, one may be asked for the version of the other, which must not be kept as that.
    """
    theme = page.server.theme
    content = web_font(name) or theme.files.get(name)
    if content is None:
        raise NotFound("There is no such file.")
    tag = etag_of(content)
    headers = {"cache-control": _KEPT if version == theme.version else "public, no-cache", "etag": tag}
    if has_current(page.request, tag):
        return Response(None, status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=headers)


def _check_form(page: PageContext) -> None:
    if page.request.header(b"content-type") == "application/json":
        page.check_csrf(page.request.header(b"x-csrf"))
        return
    page.form = parse_form(page.request)
    page.check_csrf(page.form.pop("csrf", None))


def _required_step(page: PageContext, required: str) -> str | None:
    """Return the page where the visitor must authenticate first, or None."""
    step = None
    if required == "none":
        return None
    if page.session is None:
        step = "/sign-in"
    elif not page.session.complete and required != "first factor":
        step = "/second-factor"
    elif required == "recent" and not page.is_fresh:
        step = "/confirm"
    return None if step is None else f"{step}?next={_next_path(page)}"


def _next_path(page: PageContext) -> str:
    """Return the page that the visitor requested; a form is not resent automatically."""
    if page.request.method not in {"GET", "HEAD"}:
        return quote(f"{ACCOUNT}?done=confirmed", safe="")
    query = page.request.query.decode("latin-1")
    return quote(f"{page.request.path}?{query}" if query else page.request.path, safe="")


def _redirect(to: str) -> HttpResponse:
    headers = {"location": to, **page_headers()}
    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HttpResponse(303, "text/plain", b"", headers=named)


def _on_error(request: Request[Any, Any, Any], error: Exception) -> PageResponse:
    """Return the error page. Unexpected errors are logged with their trace."""
    raw = raw_request_of(request.scope)
    answer = response_to(_refusal_of(error, raw), raw)
    headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
    page = request.scope["state"].get(_CONTEXT) or PageContext(request.app.state.page_server, raw)
    facts = error_facts(error, answer.status, raw.trace_id)
    if isinstance(error, HTTPException):
        facts["sentence"] = _WRONG_ADDRESS
    return page.render("error", status=answer.status, headers=headers, **facts)


def _refusal_of(error: Exception, request: RawRequest) -> Exception:
    """Return an error of the router as one of ours."""
    if not isinstance(error, HTTPException) or error.status_code not in _BY_STATUS:
        return error
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = str((error.headers or {}).get("allow", ""))
        return method_not_allowed(request, {each.strip() for each in allowed.split(",")} - {"OPTIONS", ""})
    if error.status_code == HTTPStatus.NOT_FOUND:
        return nothing_here()
    return BillfoldError(_BY_STATUS[error.status_code], error.detail or "The request cannot be read.")


def _methods_of(scope: Scope) -> HttpResponse:
    """Return the answer to OPTIONS: the router's own names the methods of one handler."""
    routes = scope["litestar_app"].routes
    methods = (each for route in routes if route.path_format == scope["path_template"] for each in route.methods)
    return options_response(methods)


NONE_GIVEN: Mapping[str, Provide] = {}
PACKAGES = ("billfold.web",)
_FRAMED = re.compile(r"/(account|applications|team|companies/[^/]+/(applications|agreements))(/|$)")
"""Paths of persons, and of administrators of a company, whose pages are framed by the console of a team."""


def create_pages_app(
    bank: Bank,
    customer_api: CustomerApi,
    partner_api: PartnerApi,
    *,
    clock: Callable[[], datetime] = wall_now,
    packages: tuple[str, ...] = (),
    given: Mapping[str, Provide] = NONE_GIVEN,
) -> PagesApp:
    """Return the ASGI application of the pages for one worker. `clock` is wall time.

    `packages` have further pages, which take the values in `given` by name.
    """
    packages = (*PACKAGES, *packages)
    find_company, find_partner = company_of(customer_api), partner_of(partner_api)

    async def framed_page(request: Request[Any, Any, Any]) -> PageContext:
        page = the_page(request)
        if page.is_signed_in and _FRAMED.match(page.request.path):
            page.shell = await own_shell(page, request.path_params.get("customer_id"), find_company, find_partner)
        return page

    own = {
        "page": Provide(framed_page),
        "by": Provide(page_administrator),
        "company": Provide(find_company),
        "operator": Provide(in_bank),
        "partner": Provide(find_partner),
        "team": Provide(team_of(find_company, find_partner)),
    }
    pages = PagesApp(packages, {**own, **given})
    pages.open_bank(bank, clock)
    return pages
