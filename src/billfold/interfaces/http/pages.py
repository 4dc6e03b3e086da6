"""Pages for people: what each error means, and the reference. No script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Response, get
from litestar.enums import MediaType
from litestar.handlers import HTTPRouteHandler

from billfold.engine.bank import Bank
from billfold.interfaces.http.marks import OPEN
from billfold.interfaces.http.reference import as_page
from billfold.kit.errors import NotFound, Unavailable
from billfold.kit.problems import (
    PROBLEMS,
    as_html,
    as_markdown,
    index_as_html,
    index_as_markdown,
)

MARKDOWN = "text/markdown; charset=utf-8"
_POLICY = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'"
}


@get("/health", opt=OPEN, include_in_schema=False, media_type=MediaType.TEXT)
async def show_health(bank: Bank) -> str:
    """Tell whether the bank is open: its database answers."""
    try:
        await bank.pool.fetchval("SELECT 1")
    except Exception as error:
        raise Unavailable("The database does not answer.", retry_after_seconds=1) from error
    return "OK"


@get(["/docs/errors/", "/docs/errors.md"], opt=OPEN, include_in_schema=False)
async def list_errors(request: Any) -> Response[str]:  # noqa: ANN401 - the framework's
    """List every error the APIs can answer."""
    if request.scope["path"].endswith(".md"):
        return Response(index_as_markdown(PROBLEMS.values()), media_type=MARKDOWN)
    page = index_as_html(PROBLEMS.values())
    return Response(page, media_type=MediaType.HTML, headers=_POLICY)


@get("/docs/errors/{page:str}", opt=OPEN, include_in_schema=False)
async def show_error(page: str) -> Response[str]:
    """Explain one error; with `.md` behind its code as Markdown."""
    known = PROBLEMS.get(page.removesuffix(".md"))
    if known is None:
        raise NotFound("There is no such error.")
    if page.endswith(".md"):
        return Response(as_markdown(known), media_type=MARKDOWN)
    return Response(as_html(known), media_type=MediaType.HTML, headers=_POLICY)


def reference_pages(document: Callable[[], dict[str, Any]]) -> list[HTTPRouteHandler]:
    """Return the routes of the reference: `/openapi.json` and `/docs/`, made when first asked."""
    kept: dict[str, bytes] = {}

    @get("/openapi.json", opt=OPEN, include_in_schema=False)
    async def show_openapi() -> Response[bytes]:
        """Show the OpenAPI document."""
        if "json" not in kept:
            kept["json"] = msgspec.json.format(msgspec.json.encode(document()), indent=2)
        return Response(kept["json"], media_type=MediaType.JSON)

    @get("/docs/", opt=OPEN, include_in_schema=False)
    async def show_reference() -> Response[bytes]:
        """Show the reference."""
        if "html" not in kept:
            kept["html"] = as_page(document()).encode()
        return Response(kept["html"], media_type=MediaType.HTML, headers=_POLICY)

    return [show_openapi, show_reference]


PAGES: list[HTTPRouteHandler] = [show_health, list_errors, show_error]
