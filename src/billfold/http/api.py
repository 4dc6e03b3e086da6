"""One API as an ASGI application: its operations behind authentication and rate limits.

Litestar finds the operation of a path. A request is authenticated, counted, and runs once: its
response is stored under its idempotency key and sent again to whoever repeats it. Nothing is
counted or stored of a request that is not authenticated.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import msgspec
from litestar import Litestar, Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.middleware import DefineMiddleware
from litestar.types import ASGIApp, HTTPScope, Receive, Send

from billfold.http.caller import Call
from billfold.http.deprecations import Deprecations, announcement
from billfold.http.edge.middleware import EdgeMiddleware, clock_header, create_clock_headers
from billfold.http.file_forms import boundary_of, open_file_form
from billfold.http.limits.idempotency import Admission, AdmissionRequest, IdempotencyStore
from billfold.http.limits.rate_limits import count_address, rate_limit_headers, response_without_run
from billfold.http.limits.upload_turns import UploadTurns
from billfold.http.operations import Access, Operation, Proof
from billfold.http.parameters import parse_uuid
from billfold.http.ports import FindDocumentType, RequestLog
from billfold.http.raw_request import BODY_BYTES_MAX, RawRequest, raw_request_of, read_body, receive_file
from billfold.http.responses import (
    Headers,
    HttpResponse,
    StreamedResponse,
    as_response,
    methods_of,
    respond,
    response_to,
    send_response,
)
from billfold.ledger.bank import Bank
from billfold.platform import ids
from billfold.platform.clock import business_now, wall_now
from billfold.platform.database.shortage import patiently
from billfold.platform.errors import BillfoldError

_NOT_STORED = frozenset({401, 403, 429})
_STORED_BYTES_MAX = 1024 * 1024
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who sent a request, before it is counted."""

    admission: AdmissionRequest
    call_of: Callable[[Mapping[str, Any]], Call]
    """Makes the `Call` of a request that was admitted."""
    refusal: BillfoldError | None = None
    """Why the operation is forbidden; the request is counted all the same."""


class Sender(NamedTuple):
    """Who sends a request, as far as its headers prove it: a partner or a customer, and what the API knows of it."""

    tenant: UUID
    proven: Any


class Authenticator(Protocol):
    """How requests of one API prove who sends them."""

    async def identify(self, request: RawRequest, wall: datetime) -> Sender:
        """Return who sends a request of which no body was read. Raises what is wrong with its token and their proof."""

    async def authenticate(
        self, sender: Sender, request: RawRequest, operation: Operation, *, access: Access, wall: datetime
    ) -> Identity:
        """Return who sends a request whose body is read. Raises what is wrong with its signature."""

    async def note_refused(self, call: Call, operation: Operation) -> None:
        """Record an attempt to change something without the right to."""


class Api:
    """The operations of one API, and what its process shares while a bank is open behind it."""

    def __init__(self, operations: Sequence[Operation], proofs: frozenset[Proof]) -> None:
        self.operations = operations
        self._proofs = proofs
        self._router = Litestar(
            route_handlers=[_route(each) for each in operations if each.access_by(proofs)],
            middleware=[DefineMiddleware(_Dispatch, api=self)],
            exception_handlers={Exception: _on_router_error},
            openapi_config=None,
            logging_config=None,
        )

    def open(
        self,
        bank: Bank,
        authenticator: Authenticator | None,
        *,
        request_log: RequestLog | None = None,
        find_document_type: FindDocumentType | None = None,
        **services: object,
    ) -> None:
        """Serve a bank; before it another one may have been closed.

        An API whose operations are all open needs no authenticator.
        """
        self.bank = bank
        if authenticator is not None:
            self.authenticator = authenticator
        self.services: dict[str, Any] = {"bank": bank, **services}
        self._store = IdempotencyStore(bank.pool, bank.vault, by_pooler=bank.settings.database_pooler_url is not None)
        self._deprecations = Deprecations(bank.pool)
        self.request_log = request_log
        self._find_document_type = find_document_type
        self._clock = create_clock_headers(bank)
        self._turns = UploadTurns(bank.settings.uploads_per_tenant)
        self._edge = EdgeMiddleware(self._router, bank.settings, self._clock)

    async def close(self) -> None:
        """Write down what is under way."""
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

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401
        """Serve one request."""
        await self._edge(scope, receive, send)

    def error_response(self, error: Exception, request: RawRequest) -> HttpResponse:
        """Return the response to an error of a request that was not counted."""
        return response_to(error, request)

    async def respond(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Serve a request of the operation that the router has found."""
        operation: Operation = scope["route_handler"].opt["operation"]
        request = raw_request_of(scope)
        request.path_params = scope["path_params"]
        try:
            await self.serve(operation, request, receive, send=send)
        except Exception as error:  # noqa: BLE001 - each has its response
            response = self.error_response(error, request)
            self._record(operation, request, response, proven=False)
            await response.send(send)

    async def serve(self, operation: Operation, request: RawRequest, receive: Receive, send: Send) -> None:
        """Serve a request of an operation. Raises what is wrong before it is counted."""
        access = operation.access_by(self._proofs)
        assert access is not None
        if access.proof is Proof.NONE:
            await self._serve_anybody(operation, access, request, receive=receive, send=send)
            return
        # Whoever sends a body is known before a byte of it is read.
        sender = await patiently(lambda: self.authenticator.identify(request, wall_now()))
        if operation.takes_file:
            await self._serve_upload(sender, operation, access, request=request, receive=receive, send=send)
            return
        request.body = await read_body(request, receive)
        await self._serve_known(sender, operation, access, request=request, receive=receive, send=send)

    def _record(
        self, operation: Operation, request: RawRequest, response: HttpResponse | StreamedResponse, *, proven: bool
    ) -> None:
        if self.request_log is not None:
            self.request_log.record(operation, request, response, proven=proven)

    async def _serve_upload(
        self, sender: Sender, operation: Operation, access: Access, *, request: RawRequest, receive: Receive, send: Send
    ) -> None:
        """Serve a request whose body is a file. Only once it is there it takes one of its tenant's places in memory.

        Files beyond those that a tenant may send at once are not read until it is their turn.
        """
        tenant = sender.tenant
        document_type = await patiently(lambda: self._document_type(tenant, request))
        async with (
            self._turns.receiving(tenant),
            receive_file(request, receive, document_type) as received,
            self._turns.in_memory(tenant),
        ):
            request.body = await asyncio.to_thread(received.read)
            await self._serve_known(sender, operation, access, request=request, receive=receive, send=send)

    async def _document_type(self, tenant: UUID, request: RawRequest) -> str | None:
        """Return the type in the path, or that of the document named there; None for one that is not the tenant's."""
        named = request.path_params.get("document_id")
        if named is None:
            return request.path_params.get("document_type")
        assert self._find_document_type is not None
        found = await self._find_document_type(self.bank.pool, parse_uuid("path", "document_id", named))
        entry = None if found is None else await self.bank.directory.find("customer", found.customer_id)
        is_own = entry is not None and tenant in {entry.partner_id, entry.customer_id}
        return found.type if found is not None and is_own else None

    async def _serve_anybody(
        self, operation: Operation, access: Access, request: RawRequest, receive: Receive, send: Send
    ) -> None:
        """Serve a request that needs no proof. What is limited is counted before any of its body is looked at."""
        counted = access.per_address
        headers = await count_address(self.bank.pool, request.client, wall_now()) if counted else ()
        response: HttpResponse | StreamedResponse
        try:
            request.body = await read_body(request, receive)
            operation.read(request)
            response = respond(await self._handle(operation, request), operation.status)
        except Exception as error:  # noqa: BLE001 - each has its response
            response = self.error_response(error, request)
        await send_response(request, response, headers, receive=receive, send=send)

    async def _serve_known(
        self, sender: Sender, operation: Operation, access: Access, *, request: RawRequest, receive: Receive, send: Send
    ) -> None:
        """Serve a request of somebody known, once they have proven the request."""
        wall = wall_now()
        identity = await self.authenticator.authenticate(sender, request, operation, access=access, wall=wall)
        response, headers = await self.answer(operation, request, identity, wall=wall)
        self._record(operation, request, response, proven=True)
        await send_response(request, response, headers, receive=receive, send=send)

    async def answer(
        self, operation: Operation, request: RawRequest, identity: Identity, wall: datetime
    ) -> tuple[HttpResponse | StreamedResponse, Headers]:
        """Count a request and return its response with its headers: that of the operation, or the stored one."""
        admission = await self._admit(operation, identity, wall)
        headers = _headers(operation, admission, wall)
        if admission.verdict != "run":
            return response_without_run(admission, request, wall), headers
        stored = False
        try:
            response: HttpResponse | StreamedResponse
            try:
                result = await self._call(operation, request, identity, admission=admission, wall=wall)
                response = respond(result, operation.status)
            except Exception as error:  # noqa: BLE001 - each has its response
                response = response_to(error, request)
            stored = self._store_response(identity.admission, response)
        finally:
            if not stored:
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
                stored = self._store_response(identity.admission, respond(result, operation.status))
        except BillfoldError as error:
            stored = self._store_response(identity.admission, response_to(error, request))
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

    async def _call(
        self, operation: Operation, request: RawRequest, identity: Identity, admission: Admission, wall: datetime
    ) -> Any:  # noqa: ANN401 - any type
        """Return what the handler of a request returns. Raises what forbids it, or is wrong with it."""
        call = identity.call_of(_call_fields(operation, request, identity, admission=admission, wall=wall))
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
        """Call the operation. One that only reads is called again while the database is away."""
        if operation.changes:
            return await operation.call(request, self.services)
        return await patiently(lambda: operation.call(request, self.services))

    def _store_response(self, request: AdmissionRequest, response: HttpResponse | StreamedResponse) -> bool:
        """Store a response that a repeated request shall get; tell whether it is such a one."""
        if (
            isinstance(response, StreamedResponse)
            or response.status >= _SERVER_ERROR
            or response.status in _NOT_STORED
            or len(response.body) > _STORED_BYTES_MAX
        ):
            return False
        self._store.store_response(request, response)
        return True


async def fingerprint_of(request: RawRequest) -> bytes:
    """Return the hash of all a key is bound to: method, path and query as sent, body."""
    if request.values is None:
        # The boundary of a form is another one each time it is sent.
        body = request.body.replace(boundary_of(request), b"")
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


def _call_fields(
    operation: Operation, request: RawRequest, identity: Identity, admission: Admission, wall: datetime
) -> dict[str, Any]:
    return {
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


def _headers(operation: Operation, admission: Admission, wall: datetime) -> Headers:
    headers = rate_limit_headers(admission.limit, admission.remaining, admission.resets_at)
    if admission.clock is not None:
        headers.append(clock_header(admission.clock, wall))
    if operation.deprecated is not None:
        headers += announcement(*operation.deprecated)
    return headers


def _route(operation: Operation) -> HTTPRouteHandler:
    """Return the entry of an operation in the router."""
    path = operation.path.replace("}", ":str}")
    return HTTPRouteHandler(path, http_method=operation.method, opt={"operation": operation})(_never)


async def _never() -> None:
    """Stand for the handler of every operation: requests are served before they get here."""


class _Dispatch:
    """The ASGI layer behind the router: serves what belongs to an operation."""

    def __init__(self, app: ASGIApp, api: Api) -> None:  # noqa: ARG002 - the router names it
        self._api = api

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401
        """Serve a request."""
        if scope["method"] == "OPTIONS":
            await methods_of(scope).send(send)
        else:
            await self._api.respond(scope, receive, send)


def _on_router_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Answer a request of a path that does not exist."""
    return as_response(response_to(error, raw_request_of(request.scope)))
