"""Files that are sent, as whole bodies or in forms (multipart/form-data): they go to the disk while they come.

A tenant sends some at once, and fewer of them are in memory. A form has its fields first, then one file.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from typing import IO, Final, NamedTuple
from urllib.parse import quote
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec
from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from billfold.http.raw_request import (
    BODY_BYTES_MAX,
    RawRequest,
    Receive,
    body_parts,
    declared_type,
    has_control,
    is_file_form,
    parse_uuid,
    too_large,
)
from billfold.http.responses import ProblemWithHeaders
from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Pool
from billfold.platform.database.shortage import patiently
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.file_kinds import FileKind, kind_of, max_file_bytes

FILES_RECEIVED_MAX: Final = 16
"""Number of files of a tenant that are received at once; the others are not read yet."""
FILE_WAIT_SECONDS: Final = 300.0
"""Maximum time that a file waits until it is read."""
FORM_FRAME_BYTES_MAX: Final = 64 * 1024
"""Maximum number of bytes of a form with a file that do not belong to the file."""
_FIELD_BYTES_MAX: Final = 4096
_PARTS_MAX: Final = 10
_UNTOLD: Final = frozenset({"", "application/octet-stream"})
"""Content types sent by programs that do not know the type of a file."""


class OwnedType(NamedTuple):
    """The type of a document, and its owner."""

    customer_id: UUID
    type: str


FindDocumentType = Callable[[Pool, UUID], Awaitable[OwnedType | None]]
"""Returns the type of a document of any customer, with its owner."""


class UploadTurns:
    """The uploads of one process; `in_memory_max` files of a tenant may be in memory at once."""

    def __init__(self, in_memory_max: int) -> None:
        self._in_memory_max = in_memory_max
        self._receiving: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()
        self._in_memory: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def receiving(self, tenant: UUID) -> AsyncIterator[None]:
        """Wait until a file may be received. Raises `rate-limited` after minutes."""
        turns = self._receiving.setdefault(tenant, asyncio.Semaphore(FILES_RECEIVED_MAX))
        try:
            await asyncio.wait_for(turns.acquire(), FILE_WAIT_SECONDS)
        except TimeoutError:
            after = (b"retry-after", b"60")
            raise ProblemWithHeaders("rate-limited", f"{FILES_RECEIVED_MAX} files are being received.", after) from None
        try:
            yield
        finally:
            turns.release()

    def in_memory(self, tenant: UUID) -> asyncio.Semaphore:
        """Return the slot that is held while a file is in memory."""
        return self._in_memory.setdefault(tenant, asyncio.Semaphore(self._in_memory_max))


class Uploads:
    """Receives the files that are sent to one API."""

    def __init__(self, bank: Bank, find_type: FindDocumentType | None) -> None:
        self._bank = bank
        self._find_type = find_type
        self._turns = UploadTurns(bank.settings.uploads_per_tenant)

    @asynccontextmanager
    async def in_memory(self, request: RawRequest, receive: Receive, tenant: UUID) -> AsyncIterator[None]:
        """Read the body of a request that is a file. Only once it is there it takes one of its tenant's places.

        Files beyond the limit of a tenant are not read until others are done.
        """
        document_type = await patiently(lambda: self._document_type(tenant, request))
        async with (
            self._turns.receiving(tenant),
            receive_file(request, receive, document_type) as received,
            self._turns.in_memory(tenant),
        ):
            request.body = await asyncio.to_thread(received.read)
            yield

    async def _document_type(self, tenant: UUID, request: RawRequest) -> str | None:
        """Return the type in the path, or that of the document named there; None if it is not the tenant's."""
        named = request.path_params.get("document_id")
        if named is None:
            return request.path_params.get("document_type")
        assert self._find_type is not None
        found = await self._find_type(self._bank.pool, parse_uuid("path", "document_id", named))
        entry = None if found is None else await self._bank.directory.find("customer", found.customer_id)
        is_own = entry is not None and tenant in {entry.partner_id, entry.customer_id}
        return found.type if found is not None and is_own else None


class SentFile(NamedTuple):
    """The file of a form with the headers of its part, and the fields before it."""

    fields: dict[str, str]
    headers: dict[bytes, bytes]
    content: IO[bytes]


@asynccontextmanager
async def receive_file(request: RawRequest, receive: Receive, document_type: str | None) -> AsyncIterator[IO[bytes]]:
    """Receive the file of a document of this type, or a form with it, on the disk. Raises `payload-too-large`.

    A file of another type is not read: the operation refuses it, after checking permissions.
    """
    with tempfile.TemporaryFile() as received:
        is_form = is_file_form(request)
        if is_form or is_file_kind(request):
            kinds = FileKind if is_form else (kind_in(request),)
            most = max(max_file_bytes(each, document_type) for each in kinds)
            async for part in body_parts(request, receive, most + (FORM_FRAME_BYTES_MAX if is_form else 0)):
                received.write(part)
            received.seek(0)
        yield received


def is_file_kind(request: RawRequest) -> bool:
    """Tell whether the declared type of an upload is accepted."""
    return declared_type(request) in set(FileKind)


def kind_in(request: RawRequest) -> FileKind:
    """Return the declared type of an upload. Raises `unsupported-media-type`."""
    try:
        return FileKind(declared_type(request))
    except ValueError:
        raise BillfoldError("unsupported-media-type", f"Send a file as one of {', '.join(FileKind)}.") from None


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
                for event in parser.parse(part) if part else ():  # an empty part means the end to the parser
                    form.take(event)
            parser.close()
        except MultipartError:
            raise BillfoldError("bad-request", "The form cannot be read.") from None
        if form.file is None:
            check(form.fields)
        content.seek(0)
        yield SentFile(form.fields, _headers_of(form.file), content)


def open_file_form(request: RawRequest) -> None:
    """Replace the body of a form request by its file, and the headers by those of its part.

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
    """The parts of a form received so far."""

    def __init__(self, content: IO[bytes], most: int, check: Callable[[dict[str, str]], None]) -> None:
        self.fields: dict[str, str] = {}
        self.file: MultipartSegment | None = None
        self._content, self._most, self._check = content, most, check
        self._size = 0
        self._part: MultipartSegment | None = None
        self._text = bytearray()

    def take(self, event: MultipartSegment | bytearray | bytes | None) -> None:
        """Process the beginning of a part, a piece of it, or its end."""
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
            raise BillfoldError("bad-request", "A field is repeated, or is not text.")
        self.fields[self._part.name] = text


def _headers_of(part: MultipartSegment | None) -> dict[bytes, bytes]:
    """Return the headers that describe an upload; a name that is not plain ASCII is written as in RFC 5987."""
    if part is None or not part.filename:
        return {}
    return {
        b"content-type": (part.content_type or "").encode(),
        b"content-disposition": f"attachment; filename*=UTF-8''{quote(part.filename, safe='')}".encode(),
    }


async def fingerprint_of(request: RawRequest) -> bytes:
    """Return the hash of everything a key is bound to: method, path and query as sent, body."""
    if request.values is None:
        # The boundary of a form differs each time it is sent.
        body = request.body.replace(boundary_of(request), b"") if is_file_form(request) else request.body
    else:
        body = msgspec.json.encode(request.values)
    parts = (request.method.encode(), request.path.encode("latin-1"), request.query, body)
    if len(request.body) > BODY_BYTES_MAX:  # a file, which others would wait for
        return await asyncio.to_thread(_hash_of, parts)
    return _hash_of(parts)


def _hash_of(parts: Sequence[bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()
