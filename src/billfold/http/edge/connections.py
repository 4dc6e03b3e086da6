"""Connections of one process: how many a network may have, and how long a reader of answers may take.

The server closes a connection by itself whose handshake takes 10 seconds, whose headers take 15 seconds, or which is
idle for 15 seconds; it accepts no more than `connections_max`. Requests that are being received have a deadline
(`middleware.py`). Beyond what a network may have, whoever has kept the server waiting longest gives way.
"""

import asyncio
import os
import socket
import stat
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from litestar.types import Receive, Send

from billfold.http.edge.middleware import CLOSE
from billfold.http.edge.serve import AppWithLifespan
from billfold.http.raw_request import RawRequest, is_trusted
from billfold.http.responses import problem
from billfold.platform import ids
from billfold.platform.addresses import network_of
from billfold.platform.settings.settings import Settings

SWEEP_SECONDS = 1.0
STALLED_READER_MILLISECONDS = 30_000
"""How long the other side may take nothing of an answer."""
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
    """ASGI: lets each network have so many connections, proxies as many as they like."""

    def __init__(self, app: AppWithLifespan, settings: Settings) -> None:
        self._app = app
        self._port = settings.port
        self._most = settings.connections_per_address
        self._proxies = settings.trusted_proxies
        self._behind_proxy = settings.behind_proxy
        self._busy: set[Peer] = set()
        self._receiving: defaultdict[str, dict[Peer, _Receiving]] = defaultdict(dict)
        self._seen: dict[Peer, int] = {}

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401 - any scope of ASGI
        """Serve one request."""
        peer = _client_of(scope)
        task = asyncio.current_task()
        if task is None or self._is_proxy(peer):
            await self._app(scope, receive, send)
        else:
            await self._serve(scope, receive, send, mine=_Receiving(task))

    async def _serve(self, scope: Any, receive: Receive, send: Send, *, mine: _Receiving) -> None:  # noqa: ANN401
        """Serve a request, unless it is given up while it is received."""
        peer = _client_of(scope)
        network = network_of(peer[0])
        waiting = self._receiving[network]
        waiting[peer] = mine
        self._busy.add(peer)
        if len(waiting) > self._most:
            self._give_up_slowest(waiting)

        async def sent(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
            waiting.pop(peer, None)  # it has its answer: it gives way to nobody any more
            await send(message)

        async def received() -> Any:  # noqa: ANN401 - a message of ASGI
            message: Any = await receive()
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
        """Open what is behind it, and look after its connections."""
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
        """End the oldest connections without a request of every network that has too many."""
        seen: dict[Peer, int] = {}
        idle: defaultdict[str, list[Peer]] = defaultdict(list)
        count: Counter[str] = Counter()
        for each in self._sockets():
            peer = _peer_of(each)
            if peer is not None and peer not in self._seen and _USER_TIMEOUT is not None:
                # The system ends the connection when the other side reads nothing for so long.
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
        """Yield the connections to the port that this process has, each as a copy that is closed afterwards."""
        folder = next(each for each in _DESCRIPTORS if each.is_dir())
        for each in list(folder.iterdir()):
            copy = _copy_of(int(each.name))
            if copy is None:
                continue
            with copy:
                if _is_of(copy, self._port):
                    yield copy


def _client_of(scope: Any) -> Peer:  # noqa: ANN401 - any scope of ASGI
    """Return who sends a request as sockets name them: the server writes the port as a text."""
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


async def _refuse(scope: Any, peer: Peer, send: Send) -> None:  # noqa: ANN401 - any scope of ASGI
    request = RawRequest(scope, ids.new().hex, peer[0])
    detail = "Too many requests of your network were being received."
    refusal = problem("too-many-connections", detail, request, CLOSE, (b"retry-after", b"1"))
    await refusal.send(send)
