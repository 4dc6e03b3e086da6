"""The server of a sandbox between two banks: it closes the bank for a pause and opens it again.

Everything that a process keeps of a bank is made again with it. Requests under way are answered first; those that
come in the meantime wait, and get 503 if it takes too long.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from billfold.http.edge import SECURITY_HEADERS
from billfold.http.raw_request import RawRequest
from billfold.http.responses import problem
from billfold.platform import ids
from billfold.platform.database.shortage import error_summary
from billfold.sandbox.forks.lease import POLL_SECONDS, is_paused, until_paused

if TYPE_CHECKING:
    from billfold.events.stream.broadcaster import EventBroadcaster
    from billfold.http.edge import AppWithLifespan
    from billfold.http.raw_request import Receive, Send

    OpenApp = Callable[[], AbstractAsyncContextManager[tuple[AppWithLifespan, EventBroadcaster]]]

log = structlog.get_logger(__name__)

WAIT_SECONDS = 15.0
"""How long a request waits for the bank."""
_RETRY_SECONDS = 1.0
_CLOSED = "The sandbox is making or restoring a copy of the bank. Retry after 1 second."


class ReopeningApp:
    """ASGI: serves the bank of a state directory as long as it is not paused, one bank after the other."""

    def __init__(self, open_app: OpenApp, state_dir: Path) -> None:
        self._open_app = open_app
        self._state_dir = state_dir
        self._app: AppWithLifespan | None = None
        self._open = asyncio.Event()
        self._stop = asyncio.Event()
        self._requests = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401 - any scope of ASGI
        """Serve one request, as soon as the bank is open."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while self._app is None:
                    await self._open.wait()
        except TimeoutError:
            request = RawRequest(scope, ids.new().hex, "")
            await problem("unavailable", _CLOSED, request, (b"retry-after", b"1")).send(send, SECURITY_HEADERS)
            return
        self._requests += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests -= 1

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the bank; close it in the end."""
        first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(first))
        await first
        try:
            yield
        finally:
            self._stop.set()
            await task

    async def _run(self, first: asyncio.Future[None]) -> None:
        while not self._stop.is_set():
            try:
                async with self._open_app() as (app, streams), app.lifespan():
                    self._app = app
                    self._open.set()
                    if not first.done():
                        first.set_result(None)
                    await self._serve(app, streams)
            except Exception as error:  # noqa: BLE001 - whatever it is, it may be better in a moment
                if not first.done():
                    first.set_exception(error)
                    return
                log.warning("bank_not_reopened", error=error_summary(error))
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                self._close()
                gc.unfreeze()  # what was kept for good belonged to a bank that is closed

    async def _serve(self, app: AppWithLifespan, streams: EventBroadcaster) -> None:
        """Serve until the end, or until the bank is paused and no request is under way."""
        while not self._stop.is_set():
            async with until_paused(self._state_dir, self._stop) as ended:
                await ended.wait()
            if self._stop.is_set():
                return
            self._close()
            streams.end_streams()
            while self._requests and is_paused(self._state_dir):
                await asyncio.sleep(POLL_SECONDS)
            if not self._requests:
                return
            self._app = app  # the pause was given up
            self._open.set()

    def _close(self) -> None:
        self._app = None
        self._open.clear()
