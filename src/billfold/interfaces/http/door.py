"""The door every request of the Partner API passes: token, key, shape, signature, pace, key's past.

Nothing is counted or remembered of a request before its signature holds. Behind the door the
request runs once; its answer is kept under its key and given again to whoever repeats it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast
from uuid import UUID

from billfold.domain.identity import Credential
from billfold.engine.bank import Bank
from billfold.interfaces.http.admission import (
    Admission,
    Admittance,
    Request,
    StoredAnswer,
    pace_headers,
)
from billfold.interfaces.http.answers import Answer, Headers, Turned, answer_to, unauthorized
from billfold.interfaces.http.arrivals import Arrival, arrival_of, read_body, read_file
from billfold.interfaces.http.calls import Call, Caller
from billfold.interfaces.http.clock_face import clock_face_of, clock_header
from billfold.interfaces.http.credentials import Credentials
from billfold.interfaces.http.deprecations import Deprecations, announcement
from billfold.interfaces.http.hosts import is_bare, slug_of
from billfold.interfaces.http.ids_in import is_uuid
from billfold.interfaces.http.operations import OPTIONS, Operation
from billfold.kit import ids
from billfold.kit.clock import business_now, wall_now
from billfold.kit.crypto import is_unambiguous, verify_signature
from billfold.kit.errors import BillfoldError, InvalidInput

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler
    from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

KEY_HEADER = "x-service-idempotency"
SIGNATURE_HEADER = "x-service-signature"
MISMATCH = (
    "The signature does not match what was received. Sign the key, the path as sent without its "
    "query, and the exact bytes of the body, with nothing between them."
)
FILES_AT_ONCE = 2
"""How many files are in memory at a time, from their first byte to the answer."""
_NOT_KEPT = frozenset({401, 403, 429})
_ANSWER_BYTES_MAX = 1024 * 1024
_SERVER_ERROR = 500
READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Keeper:
    """What the doors of one process share, whoever they are for."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.sandbox = not bank.settings.is_production
        self.admission = Admission(bank.pool)
        self.clock_face = clock_face_of(bank)
        self.deprecations = Deprecations(bank.pool)
        self.files = asyncio.Semaphore(FILES_AT_ONCE)
        self.operations: Mapping[HTTPRouteHandler, Operation] = {}

    async def close(self) -> None:
        """Write down what is under way."""
        await self.admission.close()
        await self.deprecations.close()
        if self.clock_face is not None:
            await self.clock_face.close()


class Doorkeeper(Keeper):
    """What the doors of the Partner API share besides."""

    def __init__(self, bank: Bank) -> None:
        super().__init__(bank)
        self.credentials = Credentials(bank.pool, bank.vault)

    async def credential_of(self, arrival: Arrival, now: datetime) -> Credential:
        """Return who holds the token of a request. Raises `unauthorized`."""
        sent = arrival.header(b"authorization")
        if sent is None:
            raise unauthorized("There is no access token in the request.", error=None)
        scheme, _, token = sent.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise unauthorized("The header must read `Authorization: Bearer <token>`.")
        credential = await self.credentials.find(token.strip(), now)
        if credential is None or not self._is_at_home(credential, arrival.host):
            raise unauthorized("The access token is unknown here, or has expired.")
        return credential

    def _is_at_home(self, credential: Credential, host: str) -> bool:
        slug = slug_of(host, self.bank.settings.domain)
        if slug is None:
            return self.sandbox and is_bare(host)
        return slug == credential.partner.slug

    def check_key(self, arrival: Arrival, credential: Credential, door: str) -> str | None:
        """Return the idempotency key of a request, its signature checked where the door asks so.

        Raises as `check_signature`; an upload needs a key and no signature.
        """
        if door == "unsigned":
            key = arrival.header(KEY_HEADER.encode())
            if key is None or not is_uuid(key):
                raise _no_key(key)
            return key
        return self.check_signature(arrival, credential, required=door == "signed")

    def check_signature(
        self, arrival: Arrival, credential: Credential, *, required: bool
    ) -> str | None:
        """Return the idempotency key of a request whose signature holds.

        Raises InvalidInput without a proper key, `ambiguous-signature`, `invalid-signature`. When
        neither is required the key may be missing (None), and the signature be left out.
        """
        key, signature = (
            arrival.header(KEY_HEADER.encode()),
            arrival.header(SIGNATURE_HEADER.encode()),
        )
        if key is None and signature is None and not required:
            return None
        if key is None or not is_uuid(key):
            raise _no_key(key)
        if signature is None and not required:
            return key
        if not is_unambiguous(key, arrival.path, arrival.body):
            raise BillfoldError(
                "ambiguous-signature",
                "The path may hold only letters, digits and / _ . -, a body begins with { or [.",
            )
        if signature is None:
            raise Turned("invalid-signature", f"The header {SIGNATURE_HEADER} is missing.")
        if not verify_signature(
            credential.shared_secrets, key, arrival.path, arrival.body, signature
        ):
            raise Turned("invalid-signature", MISMATCH)
        return key


class Kept(Protocol):
    """Whoever has a doorkeeper, for the time being."""

    keeper: Doorkeeper


class Door:
    """The ASGI layer between the router and the operations."""

    def __init__(self, app: ASGIApp, tenant: Kept) -> None:
        self._app = app
        self._tenant = tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or raise why not."""
        handler: Any = scope["route_handler"]
        keeper = self._tenant.keeper
        operation = keeper.operations.get(handler, OPTIONS)
        arrival = arrival_of(scope)
        if operation.takes_file:
            # Whoever sends a file is known before a byte of it is read.
            await keeper.credential_of(arrival, wall_now())
            async with keeper.files:
                arrival.body = await read_file(cast("HTTPScope", scope), receive, arrival)
                await self._serve(operation, arrival, scope, receive, send)
            return
        arrival.body = await read_body(cast("HTTPScope", scope), receive)
        if operation.door == "open":
            operation.read(arrival, scope["query_string"])
            await self._app(scope, receive, send)
            return
        await self._serve(operation, arrival, scope, receive, send)

    async def _serve(
        self, operation: Operation, arrival: Arrival, scope: Scope, receive: Receive, send: Send
    ) -> None:
        keeper, wall = self._tenant.keeper, wall_now()
        credential = await keeper.credential_of(arrival, wall)
        key = keeper.check_key(arrival, credential, operation.door)
        request = Request(
            caller=credential.user_id,
            per_minute=credential.partner.rate_per_minute,
            money_per_minute=credential.partner.money_per_minute,
            key=None if key is None else UUID(key),
            fingerprint=fingerprint_of(arrival, scope["query_string"]),
            claims=arrival.method not in READS,
            moves_money=operation.moves_money,
        )
        visit = Visit(keeper, operation, arrival, request, wall)
        await visit.run(self._app, scope, receive, send, caller=partial(_caller, credential))


CallOf = Callable[["Visit", Admittance], Call]


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of somebody who is known: counted, run once, its answer kept under its key."""

    keeper: Keeper
    operation: Operation
    arrival: Arrival
    request: Request
    wall: datetime

    async def run(
        self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, caller: CallOf
    ) -> None:
        """Answer it: run by `app`, replayed, or turned away. `caller` may refuse."""
        admittance = await self.keeper.admission.admit(self.request)
        headers = _headers(self.operation, admittance, self.wall)
        if self.operation.deprecated is not None:
            self.keeper.deprecations.count(self.request.caller, self.operation.name, self.wall)
        if admittance.verdict != "run":
            await _turned(admittance, self.arrival, headers, self.wall).send(send)
            return
        out = _Outgoing(send, self.keeper.admission, self.request, headers)
        straight, answer = self.operation.straight, None
        try:
            try:
                self.arrival.caller = caller(self, admittance)
                self.operation.read(self.arrival, scope["query_string"])
                if straight is not None:
                    answer = await straight.answer(self.arrival, scope["path_params"])
            except Exception as error:  # noqa: BLE001 - each has its answer
                answer = answer_to(error, self.arrival)
            if answer is None:
                await app(scope, receive, out.send)
            else:
                await answer.send(out.send)
        finally:
            await out.close()

    def call_fields(self, admittance: Admittance) -> dict[str, Any]:
        """Return what every `Call` tells of a request that was let in, but for who it is."""
        return {
            "key": self.request.key or ids.new(),
            "fingerprint": self.request.fingerprint,
            "operation": self.operation.name,
            "now": business_now(admittance.clock, self.wall),
            "wall": self.wall,
            "host": self.arrival.host,
            "trace_id": self.arrival.trace_id,
            "address": self.arrival.client,
            "agent": self.arrival.header(b"user-agent"),
        }


class _Outgoing:
    """The answer on its way out: marked with headers, and kept under the key of its request."""

    __slots__ = ("_admission", "_headers", "_request", "_send", "_settled", "_start")

    def __init__(
        self, send: Send, admission: Admission, request: Request, headers: Headers
    ) -> None:
        self._send = send
        self._admission = admission
        self._request = request
        self._headers = headers
        self._start: Any = None
        self._settled = False

    async def send(self, message: Any) -> None:  # noqa: ANN401 - a message of ASGI
        """Pass a message on; the beginning waits for the body to decide what is kept."""
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *self._headers]
            self._start = message
            return
        if self._start is not None:
            start, self._start = self._start, None
            await self._settle(start, message)
            await self._send(start)
        await self._send(message)

    async def close(self) -> None:
        """Free the key when no answer came of it."""
        if not self._settled:
            self._settled = True
            await self._admission.release(self._request)

    async def _settle(self, start: Any, message: Any) -> None:  # noqa: ANN401 - as above
        self._settled = True
        status, body = start["status"], message.get("body", b"")
        whole = not message.get("more_body", False) and len(body) <= _ANSWER_BYTES_MAX
        if not whole or status >= _SERVER_ERROR or status in _NOT_KEPT:
            await self._admission.release(self._request)
            return
        kind = next((v for k, v in start["headers"] if k.lower() == b"content-type"), b"")
        self._admission.keep(self._request, StoredAnswer(status, kind.decode("latin-1"), body))


def _no_key(sent: str | None) -> InvalidInput:
    return InvalidInput.at(
        "header", KEY_HEADER, msg="must be a UUID of 36 characters",
        kind="missing" if sent is None else "uuid_parsing",
    )  # fmt: skip


def fingerprint_of(arrival: Arrival, query: bytes) -> bytes:
    """Return the hash of all a key is bound to: method, path and query as sent, body."""
    parts = (arrival.method.encode(), arrival.path.encode("latin-1"), query, arrival.body)
    return hashlib.sha256(b"".join(len(part).to_bytes(8) + part for part in parts)).digest()


def _caller(credential: Credential, visit: Visit, admittance: Admittance) -> Caller:
    partner = credential.partner
    return Caller(
        name=f"partner-user:{credential.user_id}",
        partner_id=partner.partner_id,
        partner_slug=partner.slug,
        user_id=credential.user_id,
        own_customer_id=partner.own_customer_id,
        features=partner.features,
        **visit.call_fields(admittance),
    )


def _headers(operation: Operation, admittance: Admittance, wall: datetime) -> Headers:
    headers = pace_headers(admittance.limit, admittance.remaining, admittance.resets_at)
    if admittance.clock is not None:
        headers.append(clock_header(admittance.clock, wall))
    if operation.deprecated is not None:
        headers += announcement(*operation.deprecated)
    return headers


def _turned(admittance: Admittance, arrival: Arrival, headers: Headers, wall: datetime) -> Answer:
    """Return the answer to a request that does not run: replayed or refused."""
    if admittance.verdict == "replay" and admittance.stored is not None:
        marks = [(b"idempotent-replayed", b"true"), (b"x-service-idempotent-replay", b"true")]
        stored = admittance.stored
        return Answer(stored.status, stored.content_type, stored.body, [*headers, *marks])
    if admittance.verdict == "limited":
        seconds = max(1, admittance.resets_at - int(wall.timestamp()))
        after = (b"retry-after", str(seconds).encode())
        refusal = Turned(
            "rate-limited", f"{admittance.limit} requests are let in per minute.", *headers, after
        )
    elif admittance.verdict == "reused":
        refusal = Turned(
            "idempotency-key-reused", "This key already belongs to another request.", *headers
        )
    else:
        refusal = Turned(
            "idempotency-in-progress", "The same request is still running.",
            *headers, (b"retry-after", b"1"),
        )  # fmt: skip
    return answer_to(refusal, arrival)
