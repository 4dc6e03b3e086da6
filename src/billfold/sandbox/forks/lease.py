"""Tracks which processes have the bank of a state directory open, and makes them close it.

Each process that opens the bank of a sandbox holds a shared lock on one file. The sandbox pauses the bank by writing
another file, upon which they close it, and takes the lock exclusively. The kernel drops the lock of a dead process.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from billfold.cli.context import CliError
from billfold.http.edge import SECURITY_HEADERS
from billfold.http.raw_request import RawRequest
from billfold.http.responses import problem
from billfold.platform import ids
from billfold.platform.clock import monotonic
from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import Refused

POLL_SECONDS = 0.05
PAUSE_SECONDS = 20.0
"""Maximum time that a pause waits for processes that have the bank open."""
SANDBOX_LOCK = "sandbox.lock"
"""Locked by the running sandbox of a state directory."""
_LOCK, _PAUSED = "bank.lock", "bank.paused"


def is_paused(state_dir: Path) -> bool:
    """Tell whether processes that have the bank open should close it."""
    return (state_dir / _PAUSED).exists()


@asynccontextmanager
async def bank_lease(state_dir: Path) -> AsyncIterator[None]:
    """Hold the bank open, after any pause. Raises CliError if the process that paused the bank is gone."""
    state_dir.mkdir(parents=True, exist_ok=True)
    while True:
        while is_paused(state_dir):
            _check_sandbox_runs(state_dir)
            await asyncio.sleep(POLL_SECONDS)
        file = _try_lock(state_dir / _LOCK, fcntl.LOCK_SH)
        if file is not None and not is_paused(state_dir):
            break
        _release(file)
        await asyncio.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        _release(file)


@asynccontextmanager
async def until_paused(state_dir: Path, stop: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set when `stop` is, or when the bank must be closed."""
    ended = asyncio.Event()

    async def watch() -> None:
        while not (stop.is_set() or is_paused(state_dir)):
            await asyncio.sleep(POLL_SECONDS)
        ended.set()

    task = asyncio.create_task(watch())
    try:
        yield ended
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def pause_bank(state_dir: Path, *, is_whole: Callable[[], bool]) -> AsyncIterator[None]:
    """Keep the bank closed for the duration of the block. Raises Refused `sandbox-busy` if a process does not close it.

    The pause continues afterwards unless the bank `is_whole`: the next start of the sandbox completes it.
    """
    (state_dir / _PAUSED).touch()
    file = None
    try:
        file = await _lock_alone(state_dir / _LOCK)
        yield
    finally:
        if is_whole():
            end_pause(state_dir)
        _release(file)


def end_pause(state_dir: Path) -> None:
    """Allow the bank to be opened again, also after a sandbox that was killed during a pause."""
    (state_dir / _PAUSED).unlink(missing_ok=True)


async def _lock_alone(path: Path) -> int:
    deadline = monotonic() + PAUSE_SECONDS
    while (file := _try_lock(path, fcntl.LOCK_EX)) is None:
        if monotonic() > deadline:
            raise Refused(
                "sandbox-busy", f"A process that uses the bank did not end within {PAUSE_SECONDS:.0f} seconds."
            )
        await asyncio.sleep(POLL_SECONDS)
    return file


def _check_sandbox_runs(state_dir: Path) -> None:
    free = _try_lock(state_dir / SANDBOX_LOCK, fcntl.LOCK_SH)
    if free is not None:
        _release(free)
        raise CliError("A fork or rewind was interrupted.", "Start `billfold sandbox`, which completes or undoes it.")


def _try_lock(path: Path, kind: int) -> int | None:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _release(file: int | None) -> None:
    if file is not None:
        fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough: a forked child has the same lock open
        os.close(file)


if TYPE_CHECKING:
    from litestar.types import Receive, Send

    from billfold.events.broadcaster import EventBroadcaster
    from billfold.http.edge import AppWithLifespan

    OpenApp = Callable[[], AbstractAsyncContextManager[tuple[AppWithLifespan, EventBroadcaster]]]

log = structlog.get_logger(__name__)

WAIT_SECONDS = 15.0
"""Maximum time that a request waits for the bank."""
_RETRY_SECONDS = 1.0
_CLOSED = "The sandbox is making or restoring a copy of the bank. Retry after 1 second."


class ReopeningApp:
    """ASGI: serves the bank of a state directory while it is not paused, one bank after the other."""

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
        """Open the bank; close it at the end."""
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
                gc.unfreeze()  # the frozen objects belonged to a bank that is closed

    async def _serve(self, app: AppWithLifespan, streams: EventBroadcaster) -> None:
        """Serve until the end, or until the bank is paused and no request is running."""
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
