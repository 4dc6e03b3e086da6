"""What both APIs answer to anybody: whether the bank is open, the OpenAPI document, the way to the documentation."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from billfold.http.operations import OPEN, Operation, get
from billfold.http.responses import JSON, TEXT, HttpResponse
from billfold.ledger.bank import Bank
from billfold.platform.database.shortage import database_unavailable

HEALTH_SECONDS = 2.0


class Reference:
    """The OpenAPI document of an API, made when it is first read."""

    def __init__(self, document: Callable[[], dict[str, Any]]) -> None:
        self._document = document

    @cached_property
    def as_json(self) -> bytes:
        """The OpenAPI document."""
        return msgspec.json.format(msgspec.json.encode(self._document()), indent=2)


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
async def redirect_to_documentation() -> HttpResponse:
    """Lead whoever opens the address of the API in a browser to the documentation."""
    return HttpResponse(302, TEXT, b"See /docs/", headers=[(b"location", b"/docs/")])


@get("/openapi.json", OPEN, hidden=True)
async def show_openapi(reference: Reference) -> HttpResponse:
    """Show the OpenAPI document."""
    return HttpResponse(200, JSON, reference.as_json)


PAGES: list[Operation] = [
    show_health,
    redirect_to_documentation,
    show_openapi,
]
