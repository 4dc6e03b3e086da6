"""How the https server is started: Granian, one process per worker, TLS 1.2 or later.

`target` names a factory without parameters, such as "billfold.wiring.server:partner_app", that returns
an ASGI application (see `LazyApp`). Each worker calls it and runs its lifespan, so each
has its own pool and engine.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer
from litestar.types import Receive, Send

BACKLOG = 2048
# The server's own lines are written as those of the bank.
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
    """Return the application that a factory makes. The server's own loader imports from the current folder first."""
    app: AppWithLifespan = pkgutil.resolve_name(target)()
    return app


class AppWithLifespan(Protocol):
    """An ASGI application with a lifespan."""

    async def __call__(self, scope: Any, receive: Receive, send: Send, /) -> None:  # noqa: ANN401 - any scope of ASGI
        """Serve one request."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open it, and close it at the end."""


OpenApp = Callable[[], AbstractAsyncContextManager[AppWithLifespan]]


class LazyApp:
    """ASGI: enters `open_app` when the worker starts, leaves it when the worker stops.

    A pool of connections belongs to one event loop of one process, so nothing is opened before the worker runs.
    """

    def __init__(self, open_app: OpenApp) -> None:
        self._open_app = open_app
        self._app: AppWithLifespan | None = None

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401 - any scope of ASGI
        """Serve one request, or the lifespan of the worker."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._app is None:
            raise RuntimeError("a request came before the bank was open")
        else:
            await self._app(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:  # noqa: ANN401 - the server's
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
