"""Pages for people: what each error means, and the reference. No script, nothing from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from billfold.http.openapi.reference import (
    as_page,
    problem_as_markdown,
    problem_index,
    problem_index_as_markdown,
    problem_page,
)
from billfold.http.operations import OPEN, Operation, get
from billfold.http.responses import JSON, TEXT, HttpResponse
from billfold.ledger.bank import Bank
from billfold.platform.database.shortage import database_unavailable
from billfold.platform.errors import NotFound
from billfold.platform.problems import PROBLEMS

HEALTH_SECONDS = 2.0
MARKDOWN = "text/markdown; charset=utf-8"
HTML = "text/html; charset=utf-8"
_POLICY = (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")


class Reference:
    """The reference of an API, made when it is first read."""

    def __init__(self, document: Callable[[], dict[str, Any]]) -> None:
        self._document = document

    @cached_property
    def as_json(self) -> bytes:
        """The OpenAPI document."""
        return msgspec.json.format(msgspec.json.encode(self._document()), indent=2)

    @cached_property
    def as_html(self) -> str:
        """The document as a page."""
        return as_page(self._document())


@get("/health", OPEN, hidden=True)
async def show_health(bank: Bank) -> HttpResponse:
    """Tell whether the bank is open: its database answers."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await bank.pool.fetchval("SELECT 1")
    except Exception as error:
        raise database_unavailable() from error
    return HttpResponse(200, TEXT, b"OK")


@get("/", OPEN, hidden=True)
async def redirect_to_reference() -> HttpResponse:
    """Lead whoever opens the address of the API in a browser to its reference."""
    return HttpResponse(302, TEXT, b"See /docs/", headers=[(b"location", b"/docs/")])


@get("/docs/errors/", OPEN, hidden=True)
async def list_errors() -> HttpResponse:
    """List every error the APIs can answer."""
    return _page(problem_index(PROBLEMS.values()))


@get("/docs/errors.md", OPEN, hidden=True)
async def list_errors_as_markdown() -> HttpResponse:
    """List every error the APIs can answer, as Markdown."""
    return HttpResponse(200, MARKDOWN, problem_index_as_markdown(PROBLEMS.values()).encode())


@get("/docs/errors/{page}", OPEN, hidden=True)
async def show_error(page: str) -> HttpResponse:
    """Explain one error; with `.md` behind its code as Markdown."""
    known = PROBLEMS.get(page.removesuffix(".md"))
    if known is None:
        raise NotFound("There is no such error.")
    if page.endswith(".md"):
        return HttpResponse(200, MARKDOWN, problem_as_markdown(known).encode())
    return _page(problem_page(known))


@get("/openapi.json", OPEN, hidden=True)
async def show_openapi(reference: Reference) -> HttpResponse:
    """Show the OpenAPI document."""
    return HttpResponse(200, JSON, reference.as_json)


@get("/docs/", OPEN, hidden=True)
async def show_reference(reference: Reference) -> HttpResponse:
    """Show the reference."""
    return _page(reference.as_html)


def _page(html: str) -> HttpResponse:
    return HttpResponse(200, HTML, html.encode(), headers=[_POLICY])


PAGES: list[Operation] = [
    show_health,
    redirect_to_reference,
    list_errors,
    list_errors_as_markdown,
    show_error,
    show_openapi,
    show_reference,
]
