"""An application that is made inside the worker that serves it.

A pool of connections belongs to one event loop of one process, so nothing can be opened before
the worker runs. The server imports a factory; the bank opens when the worker starts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from litestar.types import Receive, Send


class AppWithLifespan(Protocol):
    """An ASGI application with a lifespan."""

    async def __call__(self, scope: Any, receive: Receive, send: Send, /) -> None:  # noqa: ANN401 - any scope of ASGI
        """Serve one request."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open it, and close it at the end."""


OpenApp = Callable[[], AbstractAsyncContextManager[AppWithLifespan]]


class LazyApp:
    """ASGI: enters `open_app` when the worker starts, leaves it when the worker stops."""

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
