"""Files that an operation of the API writes, sent on to the browser as they are."""

from __future__ import annotations

from litestar.response import Stream

from billfold.web.console.api_client import error_of
from billfold.web.console.company import Company
from billfold.http.operations import Operation
from billfold.http.responses import HttpResponse
from billfold.web.page_context import PageResponse
from billfold.pages.theme import page_headers


async def file_response(company: Company, operation: Operation, /, **names: object) -> PageResponse:
    """Return the file that an operation answers. Raises the error that it answers."""
    answered = await company.api.answer(operation, names)
    if isinstance(answered, HttpResponse):
        raise error_of(answered)
    headers = {name.decode(): value.decode("latin-1") for name, value in answered.headers}
    return Stream(answered.chunks, media_type=answered.content_type, headers={**headers, **page_headers()})


async def location_of(company: Company, operation: Operation, /, **names: object) -> str:
    """Return where an operation redirects to. Raises the error that it answers."""
    answered = await company.api.answer(operation, names)
    assert isinstance(answered, HttpResponse)
    found = dict(answered.headers).get(b"location")
    if found is None:
        raise error_of(answered)
    return found.decode()
