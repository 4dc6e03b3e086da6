"""A form of a page with a file: its other fields, and the file as the body of a request."""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import UUID

from billfold.http.raw_request import RawRequest
from billfold.http.uploads import receive_file_form
from billfold.platform.errors import InvalidInput
from billfold.platform.file_kinds import FileKind, max_file_bytes
from billfold.web.page_context import PageContext


class SentForm(NamedTuple):
    """The fields before the file, and a request whose body and headers are those of the file; empty without one."""

    fields: dict[str, str]
    request: RawRequest


@asynccontextmanager
async def received_file(
    page: PageContext, owner: UUID, document_type: str, *, optional: bool = False
) -> AsyncIterator[SentForm]:
    """Receive the form of a page that takes a file, within the owner's upload limit.

    Raises `forbidden` for a form of another browser, InvalidInput at `file` without a file, and reading errors.
    """
    turns = page.server.turns
    most = max(max_file_bytes(kind, document_type) for kind in FileKind)
    async with (
        turns.receiving(owner),
        receive_file_form(
            page.request, page.receive, most=most, check=lambda fields: page.check_csrf(fields.get("csrf"))
        ) as sent,
        turns.in_memory(owner),
    ):
        if not sent.headers and not optional:
            raise InvalidInput.at("file", msg="choose one first.", kind="missing")
        part = copy.copy(page.request)
        part.headers, part.body = sent.headers, await asyncio.to_thread(sent.content.read)
        yield SentForm(sent.fields, part)
