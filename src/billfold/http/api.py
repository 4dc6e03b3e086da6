"""One API as an ASGI application: its operations behind authentication and rate limits.

A request is authenticated, counted, and runs once: its response is stored under its idempotency key and sent again for
a repeated request. Nothing is counted or stored for a request that is not authenticated.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from billfold.http.admission import Admission, AdmissionRequest, IdempotencyStore
from billfold.http.caller import Call
from billfold.http.counts import Deprecations, count_address, response_headers, response_without_run
from billfold.http.edge import EdgeMiddleware, create_clock_headers
from billfold.http.operations import Access, Operation, Proof
from billfold.http.previews import Previews, Render, is_previewed
from billfold.http.raw_request import (
    RawRequest,
    Receive,
    Scope,
    Send,
    raw_request_of,
    read_body,
)
from billfold.http.responses import (
    AnyResponse,
    Header,
    Headers,
    HttpResponse,
    StreamedResponse,
    method_not_allowed,
    nothing_here,
    options_response,
    respond,
    response_to,
)
from billfold.http.uploads import FindDocumentType, Uploads, open_file_form
from billfold.ledger.bank import Bank
from billfold.platform import ids
from billfold.platform.clock import business_now, wall_now
from billfold.platform.database.shortage import patiently
from billfold.platform.errors import BillfoldError

_HOST = re.compile(r"[0-9A-Za-z!$&'()*+,;=\-._~:\[\]@%]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The sender of a request, before the request is counted."""

    admission: AdmissionRequest
    call_of: Callable[[Mapping[str, Any]], Call]
    """Makes the `Call` of an admitted request."""
    refusal: BillfoldError | None = None
    """The reason the operation is forbidden; the request is counted all the same."""


class Sender(NamedTuple):
    """The sender that the headers prove: a partner or a customer, and what the API knows of it."""

    tenant: UUID
    proven: Any


class Authenticator(Protocol):
    """Authentication of the requests of one API."""

    async def identify(self, request: RawRequest, wall: datetime) -> Sender:
        """Return the sender of a request before its body is read. Raises for an invalid token or proof."""

    async def authenticate(
        self, sender: Sender, request: RawRequest, operation: Operation, *, access: Access, wall: datetime
    ) -> Identity:
        """Return the sender of a request whose body is read. Raises for an invalid signature."""

    async def note_refused(self, call: Call, operation: Operation) -> None:
        """Record an attempt to change something without permission."""


class RequestLog(Protocol):
    """Keeps a log of the requests of each tenant."""

    def record(
        self, operation: Operation, request: RawRequest, response: AnyResponse, *, proven: bool, key: UUID | None = None
    ) -> None:
        """Log a request whose token is known, once, with its idempotency key as its owner's keys are kept."""

    async def close(self) -> None:
        """Write the pending entries."""


class Offered(NamedTuple):
    """An operation, and how the API lets it be called."""

    operation: Operation
    access: Access


class _Step:
    """A part of a path: what may follow it, under None a name, and what is offered where a path ends with it."""

    def __init__(self) -> None:
        self.inner: dict[str | None, _Step] = {}
        self.offered: dict[str, Offered] = {}


class Router:
    """Finds what is offered at a path: a whole path comes before one with names in it. Slashes count once."""

    def __init__(self, operations: Iterable[Operation], proofs: frozenset[Proof]) -> None:
        self._whole: dict[str, dict[str, Offered]] = {}
        self._first = _Step()
        for each in operations:
            if (access := each.access_by(proofs)) is not None:
                self._offered_at(each.route)[each.method] = Offered(each, access)

    def _offered_at(self, route: str) -> dict[str, Offered]:
        if "{" not in route:
            return self._whole.setdefault(route, {})
        step = self._first
        for part in route[1:].split("/"):
            step = step.inner.setdefault(None if part.startswith("{") else part, _Step())
        return step.offered

    def find(self, path: str) -> tuple[Mapping[str, Offered], list[str]]:
        """Return what is offered at a path, by method, and what stands for the names in it. Raises NotFound."""
        if (whole := self._whole.get(path)) is not None:
            return whole, []
        step, values = self._first, []
        for part in path[1:].split("/"):
            following = step.inner.get(part)
            if following is None:
                values.append(part)
                following = step.inner.get(None)
            if following is None:
                raise nothing_here()
            step = following
        if not step.offered:
            raise nothing_here()
        return step.offered, values


class Api:
    """The operations of one API, and the services of its process while a bank is open."""

    def __init__(self, operations: Sequence[Operation], proofs: frozenset[Proof]) -> None:
        self.operations = operations
        self.router = Router(operations, proofs)

    def open(
        self,
        bank: Bank,
        authenticator: Authenticator | None,
        *,
        request_log: RequestLog | None = None,
        find_document_type: FindDocumentType | None = None,
        render_preview: Render | None = None,
        **services: object,
    ) -> None:
        """Serve a bank; another one may have been served and closed before.

        An API whose operations are all open needs no authenticator.
        """
        self.bank = bank
        if authenticator is not None:
            self.authenticator = authenticator
        self.services: dict[str, Any] = {"bank": bank, **services}
        self._store = IdempotencyStore(bank.pool, bank.vault, by_pooler=bank.settings.database_pooler_url is not None)
        self._deprecations = Deprecations(bank.pool)
        self.request_log = request_log
        self._clock = create_clock_headers(bank)
        self._uploads = Uploads(bank, find_document_type)
        self._previews = None if render_preview is None else Previews(bank, render_preview)
        self._edge = EdgeMiddleware(self.respond, bank.settings, self._clock)

    async def close(self) -> None:
        """Write pending data."""
        await self._store.close()
        await self._deprecations.close()
        if self.request_log is not None:
            await self.request_log.close()
        if self._clock is not None:
            await self._clock.close()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Close the API at the end."""
        try:
            yield
        finally:
            await self.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._edge(scope, receive, send)

    def error_response(self, error: Exception, request: RawRequest) -> HttpResponse:
        """Return the response to an error of a request that was not counted."""
        return response_to(error, request)

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that came through the edge. Raises what is wrong with its address or its method."""
        request = raw_request_of(scope)
        if not _HOST.fullmatch(request.host):
            raise BillfoldError("bad-request", "Invalid host header")
        path = "/" + "/".join(filter(None, scope["path"].split("/")))
        offered, values = self.router.find(path)
        scope["path"], scope["path_template"] = path, next(iter(offered.values())).operation.route
        if scope["method"] == "OPTIONS":
            await options_response(offered).send(send)
            return
        if scope["method"] not in offered:
            raise method_not_allowed(request, offered)
        operation, access = offered[scope["method"]]
        scope["operation"] = operation
        request.path_params = dict(zip(operation.path_names, values, strict=True))
        try:
            await self._serve(operation, access, request, receive=receive, send=send)
        except Exception as error:  # noqa: BLE001 - each has its response
            response = self.error_response(error, request)
            self._record(operation, request, response, proven=False)
            await response.send(send)

    async def _serve(
        self, operation: Operation, access: Access, request: RawRequest, receive: Receive, send: Send
    ) -> None:
        """Serve a request of an operation. Raises errors that are found before it is counted."""
        if access.proof is Proof.NONE:
            await self._serve_anybody(operation, access, request, receive=receive, send=send)
            return
        # The sender of a body is known before any byte of it is read.
        sender = await patiently(lambda: self.authenticator.identify(request, wall_now()))
        if operation.takes_file:
            async with self._uploads.in_memory(request, receive, sender.tenant):
                await self._serve_known(sender, operation, access, request=request, receive=receive, send=send)
            return
        request.body = await read_body(request, receive)
        await self._serve_known(sender, operation, access, request=request, receive=receive, send=send)

    def _record(self, operation: Operation, request: RawRequest, response: AnyResponse, **logged: Any) -> None:
        if self.request_log is not None:
            self.request_log.record(operation, request, response, **logged)

    async def _serve_anybody(
        self, operation: Operation, access: Access, request: RawRequest, receive: Receive, send: Send
    ) -> None:
        """Serve a request that needs no proof. Limited ones are counted before their body is checked."""
        counted = access.per_address
        headers = await count_address(self.bank.pool, request.client, wall_now()) if counted else ()
        response: AnyResponse
        try:
            request.body = await read_body(request, receive)
            operation.read(request)
            response = respond(await self._handle(operation, request), operation.status)
        except Exception as error:  # noqa: BLE001 - each has its response
            response = self.error_response(error, request)
        await _send(request, response, headers, receive=receive, send=send)

    async def _serve_known(
        self, sender: Sender, operation: Operation, access: Access, *, request: RawRequest, receive: Receive, send: Send
    ) -> None:
        """Serve a request of a known sender, once they have proven the request."""
        wall = wall_now()
        identity = await self.authenticator.authenticate(sender, request, operation, access=access, wall=wall)
        response, headers = await self.answer(operation, request, identity, wall=wall)
        self._record(operation, request, response, proven=True, key=identity.admission.key)
        await _send(request, response, headers, receive=receive, send=send)

    async def answer(
        self, operation: Operation, request: RawRequest, identity: Identity, wall: datetime
    ) -> tuple[AnyResponse, Headers]:
        """Count a request and return its response with its headers: that of the operation, or the stored one."""
        if operation.previews and request.prefers_preview:  # its key is left for the request itself
            identity = replace(identity, admission=replace(identity.admission, key=None, claims=False))
        admission = await self._admit(operation, identity, wall)
        headers = response_headers(operation, admission, wall)
        if admission.verdict != "run":
            return response_without_run(admission, request, wall), headers
        kept = False
        try:
            response: AnyResponse
            committed = self._store.committed(identity.admission, operation.status)
            try:
                of = committed.of
                result = await self._call(operation, request, identity, admission=admission, wall=wall, response=of)
                response = committed.respond(result)
            except Exception as error:  # noqa: BLE001 - each has its response
                response = response_to(error, request)
            kept = self._store.keep_response(identity.admission, response, is_kept=committed.is_kept)
        finally:
            if not kept:
                await self._store.release(identity.admission)
        return response, headers

    async def call(self, operation: Operation, request: RawRequest, identity: Identity) -> Any:  # noqa: ANN401 - any type
        """Count a request made in this process and return what its handler returns. Raises the error it raises.

        A repeated request gets the stored response. Its body is in `request.values`.
        """
        wall = wall_now()
        admission = await self._admit(operation, identity, wall)
        if admission.verdict != "run":
            return response_without_run(admission, request, wall)
        stored = False
        try:
            result = await self._call(operation, request, identity, admission=admission, wall=wall)
            if identity.admission.key is not None:
                stored = self._store.keep_response(identity.admission, respond(result, operation.status))
        except BillfoldError as error:
            stored = self._store.keep_response(identity.admission, response_to(error, request))
            raise
        finally:
            if not stored:
                await self._store.release(identity.admission)
        return result

    async def _admit(self, operation: Operation, identity: Identity, wall: datetime) -> Admission:
        admission = await self._store.admit(identity.admission)
        if operation.deprecated is not None:
            self._deprecations.count(identity.admission.caller, operation.name, wall)
        return admission

    async def _call(self, operation: Operation, request: RawRequest, identity: Identity, **known: Any) -> Any:  # noqa: ANN401 - any type
        """Return what the handler of a request returns. Raises what forbids it, or is wrong with it."""
        call = identity.call_of(_call_fields(operation, request, identity, **known))
        if identity.refusal is not None:
            if operation.changes:
                await self.authenticator.note_refused(call, operation)
            raise identity.refusal
        request.caller = call
        if operation.takes_file:
            await asyncio.to_thread(open_file_form, request)
        operation.read(request)
        return await self._handle(operation, request)

    async def _handle(self, operation: Operation, request: RawRequest) -> Any:  # noqa: ANN401 - any type
        """Call the operation. A read is repeated while the database is unavailable."""
        if is_previewed(operation, request):
            if self._previews is None:
                request.refuse_preview()
            else:
                return await self._previews.handle(operation, request, self.services)
        if operation.changes:
            return await operation.call(request, self.services)
        return await patiently(lambda: operation.call(request, self.services))


def _call_fields(
    operation: Operation, request: RawRequest, identity: Identity, admission: Admission, wall: datetime, **more: object
) -> dict[str, Any]:
    return {
        **more,
        "key": identity.admission.key or ids.new(),
        "fingerprint": identity.admission.fingerprint,
        "operation": operation.name,
        "now": business_now(admission.clock, wall),
        "wall": wall,
        "host": request.host,
        "trace_id": request.trace_id,
        "address": request.client,
        "agent": request.header(b"user-agent"),
    }


async def _send(
    request: RawRequest, response: AnyResponse, headers: Sequence[Header], *, receive: Receive, send: Send
) -> None:
    if isinstance(response, StreamedResponse):
        await response.stream(receive, send, headers, is_head=request.is_head)
    else:
        await response.send(send, headers)
