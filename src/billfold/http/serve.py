"""The https server: Granian, one process per worker, TLS 1.2 or later; its connections; and the port of plain http.

`target` names a factory without parameters, such as "billfold.wiring.server:partner_app", that returns an ASGI
application (see `LazyApp`). Each worker calls it and runs its lifespan, so each has its own pool and engine.

The server itself closes a connection whose handshake takes 10 seconds, whose headers take 15 seconds, or which is
idle for 15 seconds; it accepts no more than `connections_max`. Requests that are being received have a deadline
(`edge.py`). Beyond what a network may have, the connection that has kept the server waiting longest gives way.

Every request to the port of plain http is answered with `https-required`. Nothing that was sent is read, so nothing
can be done with it; there is no redirect, since a client that follows one would send its secrets in the clear again.
"""

from __future__ import annotations

import asyncio
import os
import pkgutil
import socket
import stat
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from billfold.http.edge import CLOSE, AppWithLifespan, is_trusted
from billfold.http.raw_request import RawRequest, Receive, Scope, Send
from billfold.http.responses import problem
from billfold.platform import ids
from billfold.platform.addresses import network_of
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.settings import Settings

LINGER_SECONDS = 2.0
"""Maximum time that a client may continue sending before the connection is closed."""
CONNECTIONS_MAX = 200
"""Maximum number of concurrent connections: the listening process also supervises others, which takes descriptors."""
_STEP = 64 * 1024


async def serve_plain(host: str, port: int, *, https_host: str) -> asyncio.Server:
    """Return a running server. `https_host` (with its port) is where the problem's page is."""
    is_free = asyncio.BoundedSemaphore(CONNECTIONS_MAX)

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if is_free.locked():
            writer.transport.abort()
            return
        async with is_free:
            await answer(reader, writer)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(_answer(https_host))
            writer.write_eof()
            await asyncio.wait_for(_let_finish(reader), LINGER_SECONDS)
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(refuse, host, port, limit=_STEP)


async def _let_finish(reader: asyncio.StreamReader) -> None:
    """Discard incoming data. Closing earlier could prevent the client from receiving the answer."""
    while await reader.read(_STEP):
        pass


def _answer(https_host: str) -> bytes:
    problem = PROBLEMS["https-required"]
    trace_id = ids.new().hex
    body = msgspec.json.encode(
        {
            "type": f"https://{https_host}/docs/errors/{problem.code}",
            "title": problem.title,
            "status": problem.status,
            "detail": "Only https is accepted. This request was not read.",
            "code": problem.code,
            "trace_id": trace_id,
            "retryable": problem.retryable,
        }
    )
    head = (
        f"HTTP/1.1 {problem.status} Forbidden\r\n"
        "content-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\n"
        f"x-service-trace-id: {trace_id}\r\n"
        "x-content-type-options: nosniff\r\n"
        "referrer-policy: no-referrer\r\n"
        "cache-control: no-store\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


BACKLOG = 2048
# The server's own log lines have the bank's format.
_LOGGED_AS_ALL = {"formatters": {}, "handlers": {}, "loggers": {"_granian": {"propagate": True}}}
STOP_SECONDS = 15
HEADERS_SECONDS = 15_000
BUFFER_BYTES = 64 * 1024


def serve_https(
    target: str,
    *,
    host: str,
    port: int,
    workers: int = 1,
    connections: int = BACKLOG,
    certificate: Path | None = None,
    key: Path | None = None,
) -> None:
    """Serve until a signal ends it.

    Without certificate and key it speaks plain http, for a proxy in front that ends TLS.
    """
    server = MPServer(
        target,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADERS_SECONDS, max_buffer_size=BUFFER_BYTES),
        websockets=False,
        backlog=BACKLOG,
        backpressure=connections,
        ssl_cert=certificate,
        ssl_key=key,
        ssl_protocol_min=SSLProtocols.tls12,
        log_access=False,
        log_level=LogLevels.warning,
        log_dictconfig=_LOGGED_AS_ALL,
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_SECONDS,
    )
    server.serve(target_loader=_load)


def _load(target: str) -> AppWithLifespan:
    """Return the application that a factory makes. The server's own loader would search the current folder first."""
    app: AppWithLifespan = pkgutil.resolve_name(target)()
    return app


OpenApp = Callable[[], AbstractAsyncContextManager[AppWithLifespan]]


class LazyApp:
    """ASGI: enters `open_app` when the worker starts, leaves it when the worker stops.

    A pool of connections belongs to one event loop of one process, so nothing is opened before the worker runs.
    """

    def __init__(self, open_app: OpenApp) -> None:
        self._open_app = open_app
        self._app: AppWithLifespan | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan of the worker."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._app is None:
            raise RuntimeError("a request came before the bank was open")
        else:
            await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        started = False
        try:
            async with self._open_app() as app, app.lifespan():
                self._app = app
                await send({"type": "lifespan.startup.complete"})
                started = True
                await receive()
        except BaseException as error:
            stage = "shutdown" if started else "startup"
            await send({"type": f"lifespan.{stage}.failed", "message": repr(error)})
            raise
        finally:
            self._app = None
        await send({"type": "lifespan.shutdown.complete"})


SWEEP_SECONDS = 1.0
STALLED_READER_MILLISECONDS = 30_000
"""Maximum time that a client may accept no bytes of a response."""
_USER_TIMEOUT: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
_DESCRIPTORS = (Path("/proc/self/fd"), Path("/dev/fd"))
Peer = tuple[str, int]


class _Receiving:
    """A request that is being received."""

    __slots__ = ("given_up", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.given_up = False


class ConnectionLimits:
    """ASGI: limits the connections of each network, except those of proxies."""

    def __init__(self, app: AppWithLifespan, settings: Settings) -> None:
        self._app = app
        self._port = settings.port
        self._most = settings.connections_per_address
        self._proxies = settings.trusted_proxies
        self._behind_proxy = settings.behind_proxy
        self._busy: set[Peer] = set()
        self._receiving: defaultdict[str, dict[Peer, _Receiving]] = defaultdict(dict)
        self._seen: dict[Peer, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        peer = _client_of(scope)
        task = asyncio.current_task()
        if task is None or self._is_proxy(peer):
            await self._app(scope, receive, send)
        else:
            await self._serve(scope, receive, send, mine=_Receiving(task))

    async def _serve(self, scope: Scope, receive: Receive, send: Send, *, mine: _Receiving) -> None:
        """Serve a request, unless it is aborted while it is received."""
        peer = _client_of(scope)
        network = network_of(peer[0])
        waiting = self._receiving[network]
        waiting[peer] = mine
        self._busy.add(peer)
        if len(waiting) > self._most:
            self._give_up_slowest(waiting)

        async def sent(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            waiting.pop(peer, None)  # it has its answer and is no longer closed for others
            await send(message)

        async def received() -> Any:  # noqa: ANN401 - a message of ASGI
            message = await receive()
            if not message.get("more_body", False):
                waiting.pop(peer, None)
            return message

        try:
            await self._app(scope, received, sent)
        except asyncio.CancelledError:
            if not mine.given_up:
                raise
            mine.task.uncancel()
            await _refuse(scope, peer, send)
        finally:
            self._busy.discard(peer)
            waiting.pop(peer, None)
            if not waiting:
                self._receiving.pop(network, None)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the inner application, and supervise its connections."""
        async with self._app.lifespan():
            sweep = asyncio.create_task(self._run())
            try:
                yield
            finally:
                sweep.cancel()
                await asyncio.gather(sweep, return_exceptions=True)

    def _is_proxy(self, peer: Peer) -> bool:
        return self._behind_proxy or is_trusted(peer[0], self._proxies)

    def _give_up_slowest(self, waiting: dict[Peer, _Receiving]) -> None:
        slowest = next(iter(waiting))
        given_up = waiting.pop(slowest)
        given_up.given_up = True
        given_up.task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Close the oldest connections without a request of every network that has too many."""
        seen: dict[Peer, int] = {}
        idle: defaultdict[str, list[Peer]] = defaultdict(list)
        count: Counter[str] = Counter()
        for each in self._sockets():
            peer = _peer_of(each)
            if peer is not None and peer not in self._seen and _USER_TIMEOUT is not None:
                # The system closes the connection if the other side reads nothing for this long.
                each.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, STALLED_READER_MILLISECONDS)
            if peer is None or self._is_proxy(peer):
                continue
            network = network_of(peer[0])
            count[network] += 1
            seen[peer] = self._seen.get(peer, 0) + 1
            if peer not in self._busy:
                idle[network].append(peer)
        self._seen = seen
        excess = {
            peer
            for network, peers in idle.items()
            for peer in sorted(peers, key=seen.__getitem__, reverse=True)[: max(0, count[network] - self._most)]
        }
        for each in self._sockets() if excess else ():
            if _peer_of(each) in excess:
                _shut_down(each)

    def _sockets(self) -> Iterator[socket.socket]:
        """Yield the process's connections to the port, each as a copy that is closed afterwards."""
        folder = next(each for each in _DESCRIPTORS if each.is_dir())
        for each in list(folder.iterdir()):
            copy = _copy_of(int(each.name))
            if copy is None:
                continue
            with copy:
                if _is_of(copy, self._port):
                    yield copy


def _client_of(scope: Scope) -> Peer:
    """Return the sender of a request as sockets name it: the server writes the port as a text."""
    address, port = scope.get("client") or ("", 0)
    return address, int(port)


def _copy_of(descriptor: int) -> socket.socket | None:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        return socket.socket(fileno=os.dup(descriptor))
    except OSError:  # closed in the meantime
        return None


def _is_of(copy: socket.socket, port: int) -> bool:
    try:
        return copy.family in {socket.AF_INET, socket.AF_INET6} and copy.getsockname()[1] == port
    except OSError:
        return False


def _peer_of(copy: socket.socket) -> Peer | None:
    try:
        address, port, *_ = copy.getpeername()
    except OSError:
        return None
    return address, port


def _shut_down(copy: socket.socket) -> None:
    try:
        copy.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


async def _refuse(scope: Scope, peer: Peer, send: Send) -> None:
    request = RawRequest(scope, ids.new().hex, peer[0])
    detail = "Too many requests of your network were being received."
    refusal = problem("too-many-connections", detail, request, CLOSE, (b"retry-after", b"1"))
    await refusal.send(send)
