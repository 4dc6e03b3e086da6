"""The load generator: prebuilt requests over kept-alive TLS connections, as little work as can be.

Signing and formatting happen before the start. A closed run keeps every connection busy; an open
run sends at given instants and counts waiting for a free connection as latency too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from pathlib import Path
from typing import cast

import msgspec
from typing_extensions import override

from benchmarks.measurements import Timing, percentile
from benchmarks.worker_processes import WorkloadError
from billfold.cli.python_process import tune_garbage_collector
from billfold.platform import ids
from billfold.platform.clock import monotonic
from billfold.platform.crypto import sign_request

CONNECTIONS = 256

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length:"
_CHUNKED = b"transfer-encoding: chunked"
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_TICK_SECONDS = 0.001
_REFUSED_AT_MOST = 0.05
_GIVE_UP_SECONDS = 120.0


class Credentials(msgspec.Struct, frozen=True):
    """The credentials of a partner."""

    host: str
    token: str
    secret: str


class PlainHeaders(msgspec.Struct, frozen=True):
    """The requests to another server, over plain HTTP: header lines, and the header of an idempotency key.

    One of its requests may be refused without ending the run; refusals are counted.
    """

    host: str
    lines: list[str]
    key_header: str | None = None


class Call(msgspec.Struct, frozen=True):
    """One request to be sent; without credentials it is sent bare."""

    method: str
    path: str
    query: str = ""
    body: str = "{}"


class LoadTask(msgspec.Struct, frozen=True, kw_only=True):
    """The requests to send. `per_second` makes it an open run; `connections` of them share the work."""

    calls: list[Call]
    port: int
    credentials: Credentials | PlainHeaders | None
    connections: int = CONNECTIONS
    per_second: float | None = None


class LoadResult(msgspec.Struct, frozen=True):
    """The timing, latencies in milliseconds, and refusals."""

    timing: Timing
    p50_ms: float
    p99_ms: float
    refused: int = 0


class _Connection(asyncio.Protocol):
    """One connection; sends a request and reports its latency."""

    def __init__(self, load_run: LoadRun) -> None:
        self._load_run = load_run
        self._buffer = b""
        self._since = 0.0
        self._transport: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, request: bytes, since: float) -> None:
        """Send a request whose latency counts from `since`."""
        assert self._transport is not None
        self._since = since
        self._transport.write(request)

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer = data if not self._buffer else self._buffer + data
        head = self._buffer.find(_END_OF_HEAD)
        if head < 0:
            return
        if not self._is_complete(head):
            return
        answer, self._buffer = self._buffer, b""
        self._load_run.answered(self, answer, self._since)

    def _is_complete(self, head: int) -> bool:
        lower = self._buffer[:head].lower()
        at = lower.find(_LENGTH)
        if at >= 0:
            length = int(lower[at + len(_LENGTH) :].split(b"\r", 1)[0])
            return len(self._buffer) >= head + len(_END_OF_HEAD) + length
        if _CHUNKED not in lower:
            self._load_run.fail(f"an answer without length: {self._buffer[:200]!r}")
            return False
        return self._buffer.endswith(_LAST_CHUNK)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._load_run.fail(f"the server hung up: {exc!r}")

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()


class LoadRun:
    """All connections of one run, and what they still have to send."""

    def __init__(self, requests: list[bytes], per_second: float | None, *, may_refuse: bool = False) -> None:
        self._requests = requests
        self._per_second = per_second
        self._may_refuse = may_refuse
        self._refused = 0
        self._sent = 0
        self._free: deque[_Connection] = deque()
        self._waiting: deque[tuple[bytes, float]] = deque()
        self._latencies: list[float] = []
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, connections: list[_Connection]) -> LoadResult:
        """Send everything and wait for every answer. Raises WorkloadError at the first bad one."""
        started = monotonic()
        if self._per_second is None:
            for connection in connections:
                self._next(connection)
        else:
            self._free.extend(connections)
            await self._pace(started, self._per_second)
        await asyncio.wait_for(self._done, _GIVE_UP_SECONDS)
        return LoadResult(
            Timing(len(self._latencies), started, monotonic()),
            percentile(self._latencies, 50) * 1e3,
            percentile(self._latencies, 99) * 1e3,
            self._refused,
        )

    def answered(self, connection: _Connection, answer: bytes, since: float) -> None:
        """Take an answer and give the connection its next request."""
        if answer[9:10] != b"2":
            self._refused += 1
            if not self._may_refuse or self._refused > len(self._requests) * _REFUSED_AT_MOST:
                self.fail(f"refused: {answer[:1000]!r}")
                return
        self._latencies.append(monotonic() - since)
        if len(self._latencies) == len(self._requests) and not self._done.done():
            self._done.set_result(None)
        self._next(connection)

    def fail(self, why: str) -> None:
        """End the run."""
        if not self._done.done():
            self._done.set_exception(WorkloadError(why))

    def _next(self, connection: _Connection) -> None:
        if self._per_second is not None:
            if self._waiting:
                connection.send(*self._waiting.popleft())
            else:
                self._free.append(connection)
        elif self._sent < len(self._requests):
            self._sent += 1
            connection.send(self._requests[self._sent - 1], monotonic())

    async def _pace(self, started: float, per_second: float) -> None:
        """Send each request at its instant, regardless of those before it."""
        for nth, request in enumerate(self._requests):
            due = started + nth / per_second
            while (now := monotonic()) < due:
                await asyncio.sleep(max(_TICK_SECONDS, due - now))
            if self._done.done():
                return
            if self._free:
                self._free.popleft().send(request, due)
            else:
                self._waiting.append((request, due))


class LoadGenerator:
    """Sends what its task says, from one process."""

    def __init__(self, trusted: Path) -> None:
        self._tls = ssl.create_default_context(cafile=str(trusted))

    async def send(self, task: LoadTask) -> LoadResult:
        """Sign and format every request; then connect, send, and hang up."""
        who = task.credentials
        requests = [
            plain_request(call, who) if isinstance(who, PlainHeaders) else request_of(call, who) for call in task.calls
        ]
        loop = asyncio.get_running_loop()
        plain = isinstance(who, PlainHeaders)
        load_run = LoadRun(requests, task.per_second, may_refuse=plain)
        host = who.host.partition(":")[0] if who else "localhost"
        connections: list[_Connection] = []
        for _ in range(min(task.connections, len(requests))):
            _, connection = await loop.create_connection(
                lambda: _Connection(load_run),
                host if plain else "127.0.0.1",
                task.port,
                ssl=None if plain else self._tls,
                server_hostname=None if plain else host,
            )
            connections.append(connection)
        try:
            return await load_run.run(connections)
        finally:
            for connection in connections:
                connection.close()

    async def close(self) -> None:
        """Nothing stays open between runs."""


def request_of(
    call: Call, credentials: Credentials | None, *, key: str | None = None, forwarded: bool = False
) -> bytes:
    """Return a signed request as bytes, with a new key unless one is given.

    `forwarded` adds what a proxy adds that ends TLS.
    """
    target = call.path + (f"?{call.query}" if call.query else "")
    body = call.body.encode()
    lines = [f"{call.method} {target} HTTP/1.1"]
    if credentials is None:
        lines += ["Host: localhost"]
        body = b""
    else:
        key = key or str(ids.new())
        lines += [
            f"Host: {credentials.host}",
            f"Authorization: Bearer {credentials.token}",
            f"x-service-idempotency: {key}",
            f"x-service-signature: {sign_request(credentials.secret, key, call.path, body=body)}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
    if forwarded:
        lines += ["X-Forwarded-Proto: https", "X-Forwarded-For: 127.0.0.1"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def plain_request(call: Call, headers: PlainHeaders) -> bytes:
    """Return a request to another server as bytes, with a new idempotency key."""
    body = call.body.encode()
    lines = [
        f"{call.method} {call.path} HTTP/1.1",
        f"Host: {headers.host}",
        *headers.lines,
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    if headers.key_header:
        lines.append(f"{headers.key_header}: {ids.new()}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def open_load_generator(trusted: Path) -> LoadGenerator:
    """Return a load generator that trusts one certificate authority."""
    tune_garbage_collector()
    return LoadGenerator(trusted)
