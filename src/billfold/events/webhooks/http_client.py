"""Calls addresses that others gave us: resolved once, checked, and limited in every dimension.

Written on sockets and h11 to control the connection: it goes to the very address that
was checked, with the name of the host in TLS and in the request. No redirect is followed, no
proxy used, no cookie kept.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import h11
import msgspec

from billfold.events.webhooks import ssrf
from billfold.events.webhooks.ssrf import Target
from billfold.platform.clock import monotonic
from billfold.platform.errors import InvalidInput
from billfold.platform.settings.kinds import Network
from billfold.platform.settings.settings import Settings

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""For a whole call: name look-up, connection, request and answer."""
BODY_SECONDS = 1.0
"""Maximum time spent reading and discarding the rest of a response, to keep the connection."""
BODY_BYTES = 64 * 1024
CONNECTION_SECONDS = 30.0
"""Lifetime of a connection, after which its host is resolved again."""
_HEAD_BYTES = 16 * 1024
_CHUNK = 16 * 1024


class WebhookResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call. `code` is 0 when there was no answer; `message` says which kind it was.

    Of the receiver's answer it contains only the status and the time at which to call again.
    """

    code: int
    message: str
    retry_after: str | None = None


async def check_url(url: str, settings: Settings, *, resolve: ssrf.Resolver | None = None) -> None:
    """Refuse the address of a new subscription: InvalidInput at body.url. It is checked again at each call.

    A name that has no address now may get one before anything is delivered, so it is accepted.
    """
    try:
        target = ssrf.parse_target(url)
        try:
            await ssrf.resolve_allowed(target, allowed=settings.webhook_allowed_networks, resolve=resolve)
        except ssrf.NoSuchHost:
            ssrf.check_public_form(target)
    except ssrf.ForbiddenAddress as refused:
        raise InvalidInput.at("body", "url", msg=str(refused)) from None


class GuardedWebhookClient:
    """Makes connections to public addresses, and to inner networks that are allowed."""

    def __init__(
        self, *, allowed: Sequence[Network] = (), trusted_ca: Path | None = None, resolve: ssrf.Resolver | None = None
    ) -> None:
        self.allowed = tuple(allowed)
        self.resolve = resolve
        self.tls = ssl.create_default_context()
        if trusted_ca is not None:
            self.tls.load_verify_locations(trusted_ca)

    def connection(self, url: str) -> GuardedConnection:
        """Return a connection to a url; nothing is connected before the first call."""
        return GuardedConnection(self, url)


class GuardedConnection:
    """One connection at a time to one url."""

    def __init__(self, client: GuardedWebhookClient, url: str) -> None:
        self._client = client
        self._url = url
        self._target: Target | None = None
        self._connection: _HttpConnection | None = None

    async def post(self, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        """Post a body and return the result, within `ANSWER_SECONDS`."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._post(headers, body)
        except TimeoutError:
            answer = WebhookResponse(code=0, message="no answer in time")
        except ssrf.ForbiddenAddress as refused:
            answer = WebhookResponse(code=0, message=f"not called: the address {refused}")
        except ssrf.NoSuchHost:
            answer = WebhookResponse(code=0, message="the host was not found")
        except ssl.SSLError:
            answer = WebhookResponse(code=0, message="no trusted encryption")
        except h11.RemoteProtocolError:
            answer = WebhookResponse(code=0, message="an answer that is not HTTP")
        except EOFError:
            answer = WebhookResponse(code=0, message="hung up without an answer")
        except OSError:
            answer = WebhookResponse(code=0, message="no connection")
        await self.disconnect()
        return answer

    async def disconnect(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _post(self, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
        target = self._target = self._target or ssrf.parse_target(self._url)
        existing = self._connection
        if existing is not None and existing.is_fresh():
            try:
                return await self._call(existing, target, headers, body=body)
            except (EOFError, ConnectionError):
                # The receiver closed the idle connection: repeat on a new one.
                if existing.received_any:
                    raise
        await self.disconnect()
        self._connection = await self._connect(target)
        return await self._call(self._connection, target, headers, body=body)

    async def _call(
        self, connection: _HttpConnection, target: Target, headers: Mapping[str, str], body: bytes
    ) -> WebhookResponse:
        response = await connection.send_request(target, headers, body)
        if not await connection.finish():
            await self.disconnect()
        return WebhookResponse(
            code=response.status_code,
            message=_status_phrase(response.status_code),
            retry_after=_header(response, b"retry-after"),
        )

    async def _connect(self, target: Target) -> _HttpConnection:
        async with asyncio.timeout(CONNECT_SECONDS):
            client = self._client
            addresses = await ssrf.resolve_allowed(target, allowed=client.allowed, resolve=client.resolve)
            *others, last = addresses
            for address in others:
                with suppress(OSError):
                    return await _open_connection(address, target, client.tls)
            return await _open_connection(last, target, client.tls)


async def _open_connection(address: str, target: Target, tls: ssl.SSLContext) -> _HttpConnection:
    """Connect to an address that was checked, under the name it was found by."""
    secure = target.scheme == "https"
    return _HttpConnection(
        *await asyncio.open_connection(
            address,
            target.port,
            limit=_CHUNK,
            ssl=tls if secure else None,
            server_hostname=target.host if secure else None,
        )
    )


class _HttpConnection:
    """A connection that speaks HTTP/1.1, one request after the other."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self._until = monotonic() + CONNECTION_SECONDS
        self.received_any = False
        """True if any byte of the response to the last request has arrived."""

    def is_fresh(self) -> bool:
        """Return whether another request may be sent over it."""
        return monotonic() < self._until and not self._writer.is_closing()

    async def send_request(self, target: Target, headers: Mapping[str, str], body: bytes) -> h11.Response:
        """Send a request and return the head of its answer."""
        self.received_any = False
        header_fields = [("host", target.authority), ("content-length", str(len(body))), *headers.items()]
        request = h11.Request(method="POST", target=target.path, headers=header_fields)
        sent = (self._http.send(request), self._http.send(h11.Data(data=body)))
        self._http.send(h11.EndOfMessage())
        self._writer.write(b"".join(filter(None, sent)))
        await self._writer.drain()
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event
            if self._http.their_state is h11.CLOSED:
                raise EOFError("closed before the head of an answer")

    async def finish(self) -> bool:
        """Read the rest of an answer; return whether the connection may be used again."""
        remaining = BODY_BYTES
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while remaining > 0:
                    event = await self._next()
                    if isinstance(event, h11.EndOfMessage):
                        return self._start_next_cycle()
                    if not isinstance(event, h11.Data):
                        return False
                    remaining -= len(event.data)
        except (TimeoutError, OSError, EOFError, h11.RemoteProtocolError):
            return False
        return False

    def close(self) -> None:
        """Close the socket; do not wait for further data from the other side."""
        self._writer.transport.abort()

    def _start_next_cycle(self) -> bool:
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def _next(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            received = await self._reader.read(_CHUNK)
            if received:
                self.received_any = True
            elif not self.received_any:
                raise EOFError("closed without an answer")
            self._http.receive_data(received)


def _status_phrase(code: int) -> str:
    """Return the reason phrase of a status as the standard words it, not the receiver's."""
    if HTTPStatus.MULTIPLE_CHOICES <= code < HTTPStatus.BAD_REQUEST:
        return "a redirect, which is not followed"
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "a status without a name"


def _header(response: h11.Response, name: bytes) -> str | None:
    for header_name, value in response.headers:
        if header_name == name:
            return bytes(value).decode("latin-1")[:100]
    return None
