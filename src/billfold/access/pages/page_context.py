"""The entrance every page lies behind: whose browser, from our own form, signed in far enough.

A page says with a mark who may see it; without one it is for people signed in with both factors.
What changes something comes by POST, from our own origin, with the token of its browser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from billfold.access.pages.session import HOME, Visit, form_of
from billfold.access.pages.theme import Looks, page_headers
from billfold.access.partners.password_hashing import PasswordGate
from billfold.access.users import sessions
from billfold.access.users import store as user_store
from billfold.access.users.passkeys import Site
from billfold.http.limits.ip_rate_limit import count_address
from billfold.http.raw_request import raw_request_of, read_body
from billfold.http.responses import HttpResponse
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

BODY_BYTES_MAX = 64 * 1024
_VISIT = "visit"
Marks = dict[str, Any]

ANYBODY: Marks = {"entrance": "anybody"}
"""For whoever comes."""
HALFWAY: Marks = {"entrance": "halfway"}
"""For those who have proved one factor, or both."""
FRESH: Marks = {"entrance": "fresh"}
"""For those who proved within the last five minutes who they are."""


class Desk:
    """What all pages of one process share."""

    def __init__(self, bank: Bank, clock: Callable[[], datetime] = wall_now) -> None:
        self.bank = bank
        self.clock = clock
        self.looks = Looks()
        self.gate = PasswordGate()
        self.origin = bank.settings.auth_origin
        host = self.origin.removeprefix("https://").partition(":")[0]
        self.site = Site(host, self.origin)
        self.csrf_key = hashlib.blake2b(bank.seed, person=b"billfold.forms").digest()


class Entrance:
    """The ASGI layer between the router and the pages."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or send it where it has to go first."""
        desk, arrival = self._desk, raw_request_of(scope)
        arrival.body = await read_body(arrival, receive, BODY_BYTES_MAX)
        visit = Visit(arrival, desk.csrf_key, desk.clock())
        scope["state"][_VISIT] = visit
        visit.session = await user_store.find_session(desk.bank.pool, visit.cookie_hash, visit.now)
        if arrival.method == "POST":
            await count_address(desk.bank.pool, arrival.client, visit.now)
            self._look_at_form(visit)
        handler: Any = scope["route_handler"]
        first = _first(visit, handler.opt.get("entrance", "signed in"), scope)
        if first is not None:
            await _way_to(first).send(send)
            return
        if visit.is_signed_in:
            await sessions.note_seen(desk.bank.pool, visit.cookie_hash, visit.now)
        await self._app(scope, receive, send)

    def _look_at_form(self, visit: Visit) -> None:
        visit.must_come_from(self._desk.site)
        if visit.arrival.header(b"content-type") == "application/json":
            visit.must_carry(visit.arrival.header(b"x-csrf"))
            return
        visit.form = form_of(visit.arrival)
        visit.must_carry(visit.form.pop("csrf", None))


def visit_of(scope: Any) -> Visit:  # noqa: ANN401 - a scope of the framework
    """Return the visit of a request that came through the entrance."""
    found: Visit = scope["state"][_VISIT]
    return found


def find_visit(scope: Any) -> Visit | None:  # noqa: ANN401 - as above
    """Return the visit of a request, or None when it went wrong before there was one."""
    found: Visit | None = scope["state"].get(_VISIT)
    return found


def _first(visit: Visit, entrance: str, scope: Any) -> str | None:  # noqa: ANN401 - a scope of the framework
    """Return where the visitor has to go before, or None when he may come in."""
    page = None
    if entrance == "anybody":
        return None
    if visit.session is None:
        page = "/sign-in"
    elif not visit.session.complete and entrance != "halfway":
        page = "/second-factor"
    elif entrance == "fresh" and not visit.is_fresh:
        page = "/confirm"
    return None if page is None else f"{page}?next={_wanted(visit, scope)}"


def _wanted(visit: Visit, scope: Any) -> str:  # noqa: ANN401 - a scope of the framework
    """Return what the visitor wanted to see; a form is not sent again by itself."""
    if visit.arrival.method != "GET":
        return quote(HOME, safe="")
    query = scope["query_string"].decode("latin-1")
    return quote(f"{visit.arrival.path}?{query}" if query else visit.arrival.path, safe="")


def _way_to(page: str) -> HttpResponse:
    headers = {"location": page, **page_headers()}
    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HttpResponse(303, "text/plain", b"", named)
