"""Forms with a file (multipart/form-data): fields first, then one file, which goes to the disk while it comes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import IO, TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from billfold.platform.file_kinds import (kind_of)
from billfold.http.json_syntax import has_control
from billfold.http.raw_request import FORM_FRAME_BYTES_MAX, RawRequest, body_parts, is_file_form, too_large
from billfold.platform.errors import BillfoldError, InvalidInput

if TYPE_CHECKING:
    from litestar.types import Receive

_FIELD_BYTES_MAX: Final = 4096
_PARTS_MAX: Final = 10
_UNTOLD: Final = frozenset({"", "application/octet-stream"})
"""What programs send that do not know the type of a file."""


class SentFile(NamedTuple):
    """The file of a form with the headers of its part, and the fields before it."""

    fields: dict[str, str]
    headers: dict[bytes, bytes]
    content: IO[bytes]


@asynccontextmanager
async def receive_file_form(
    request: RawRequest, receive: Receive, *, most: int, check: Callable[[dict[str, str]], None]
) -> AsyncIterator[SentFile]:
    """Receive a form whose file has at most `most` bytes; `check` sees the fields before the file is read.

    Raises `bad-request`, `payload-too-large`, and what `check` raises.
    """
    with tempfile.TemporaryFile() as content:
        form = _Form(content, most, check)
        try:
            parser = PushMultipartParser(boundary_of(request), max_segment_count=_PARTS_MAX)
            async for part in body_parts(request, receive, most + FORM_FRAME_BYTES_MAX):
                for event in parser.parse(part) if part else ():  # to the parser nothing is the end
                    form.take(event)
            parser.close()
        except MultipartError:
            raise BillfoldError("bad-request", "The form cannot be read.") from None
        if form.file is None:
            check(form.fields)
        content.seek(0)
        yield SentFile(form.fields, _headers_of(form.file), content)


def open_file_form(request: RawRequest) -> None:
    """Let the body of a request that is a form be its file, and the headers be those of its part.

    A body of another type stays as it is. Raises InvalidInput for a form without a file, `bad-request`.
    """
    if not is_file_form(request):
        return
    content = BytesIO()
    form = _Form(content, len(request.body), lambda _: None)
    try:
        parser = PushMultipartParser(boundary_of(request), max_segment_count=_PARTS_MAX)
        for event in parser.parse(request.body) if request.body else ():
            form.take(event)
        parser.close()
    except MultipartError:
        raise BillfoldError("bad-request", "The form cannot be read.") from None
    if form.file is None:
        raise InvalidInput.at("body", "file", msg="a file is required", kind="missing")
    request.body = content.getvalue()
    request.headers |= _headers_of(form.file)
    if request.header(b"content-type") in _UNTOLD and (kind := kind_of(request.body)):
        request.headers[b"content-type"] = kind.encode()


def boundary_of(request: RawRequest) -> bytes:
    """Return what separates the parts of a form; nothing for a body of another type."""
    if not is_file_form(request):
        return b""
    boundary: str = parse_options_header(request.header(b"content-type") or "")[1].get("boundary", "")
    return boundary.encode("latin-1")


class _Form:
    """What has come of a form so far."""

    def __init__(self, content: IO[bytes], most: int, check: Callable[[dict[str, str]], None]) -> None:
        self.fields: dict[str, str] = {}
        self.file: MultipartSegment | None = None
        self._content, self._most, self._check = content, most, check
        self._size = 0
        self._part: MultipartSegment | None = None
        self._text = bytearray()

    def take(self, event: MultipartSegment | bytearray | bytes | None) -> None:
        """Take the beginning of a part, a piece of it, or its end."""
        if isinstance(event, MultipartSegment):
            self._begin(event)
        elif event is None:
            self._end()
        elif self._part is self.file:
            self._size += len(event)
            if self._size > self._most:
                raise too_large(self._most)
            self._content.write(event)
        else:
            self._text += event
            if len(self._text) > _FIELD_BYTES_MAX:
                raise too_large(_FIELD_BYTES_MAX)

    def _begin(self, part: MultipartSegment) -> None:
        self._part, self._text = part, bytearray()
        if part.filename is None:
            return
        if self.file is not None:
            raise BillfoldError("bad-request", "The form has more than one file.")
        self._check(self.fields)
        self.file = part

    def _end(self) -> None:
        assert self._part is not None
        if self._part is self.file:
            return
        try:
            text = self._text.decode()
        except UnicodeDecodeError:
            text = "\0"
        if self._part.name in self.fields or has_control(text):
            raise BillfoldError("bad-request", "A field comes twice, or is no text.")
        self.fields[self._part.name] = text


def _headers_of(part: MultipartSegment | None) -> dict[bytes, bytes]:
    """Return the headers by which an upload says what it is; a name that is not plain is written as RFC 5987 has it."""
    if part is None or not part.filename:
        return {}
    return {
        b"content-type": (part.content_type or "").encode(),
        b"content-disposition": f"attachment; filename*=UTF-8''{quote(part.filename, safe='')}".encode(),
    }
