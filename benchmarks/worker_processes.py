"""Processes that run a workload on command, each on its own event loop.

A workload is opened once, then its methods are called by name; between calls it sleeps and costs nothing.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import traceback
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol, Self

import uvloop

from benchmarks.measurements import peak_memory_mib

# Workers are forked from one process that has imported everything.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["benchmarks.cli"])
_OPEN_SECONDS = 120.0
_END_SECONDS = 30.0
_CLOSE = "close"


class WorkloadError(RuntimeError):
    """A workload failed; the text is its traceback."""


class Workload(Protocol):
    """Work for a process, with any number of asynchronous methods."""

    async def close(self) -> None:
        """Release everything."""


class Worker:
    """A workload in a separate process, on asyncio's own loop unless told otherwise."""

    def __init__(self, opener: Callable[..., Awaitable[Workload]], *, fast: bool = False, **arguments: Any) -> None:
        ours, theirs = multiprocessing.Pipe()
        self._pipe = ours
        self._process = _CONTEXT.Process(target=_run_process, args=(theirs, opener, arguments, fast))
        self._process.start()
        theirs.close()
        self._receive(_OPEN_SECONDS)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the workload and return its answer. Raises WorkloadError when it fails."""
        self.start(method, *arguments)
        return self.finish()

    def start(self, method: str, *arguments: Any) -> None:
        """Call a method without waiting for it."""
        self._pipe.send((method, arguments))

    def finish(self) -> Any:
        """Wait for the call that was started and return its answer. Raises WorkloadError when it failed."""
        return self._receive()

    def peak_memory_mib(self) -> float:
        """Return the most memory it has held."""
        assert self._process.pid is not None
        return peak_memory_mib(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, kindly first."""
        if self._process.is_alive():
            self.start(_CLOSE)
            self._process.join(_END_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def _receive(self, seconds: float | None = None) -> Any:
        try:
            if not self._pipe.poll(seconds):
                raise WorkloadError("a worker did not open in time")
            failed, answer = self._pipe.recv()
        except EOFError:
            raise WorkloadError("a worker died") from None
        if failed:
            raise WorkloadError(answer)
        return answer


def run_together(workers: Sequence[Worker], method: str) -> list[Any]:
    """Call a method of all at once, wait for all, and return their answers."""
    for worker in workers:
        worker.start(method)
    return [worker.finish() for worker in workers]


def _run_process(
    pipe: Connection,
    opener: Callable[..., Awaitable[Workload]],
    arguments: dict[str, Any],
    fast: bool,  # noqa: FBT001 - passed by position to a new process
) -> None:
    run = uvloop.run if fast else asyncio.run
    try:
        run(_serve(pipe, opener, arguments))
    except (EOFError, KeyboardInterrupt):
        return


async def _serve(pipe: Connection, opener: Callable[..., Awaitable[Workload]], arguments: dict[str, Any]) -> None:
    try:
        workload = await opener(**arguments)
    except Exception:  # noqa: BLE001 - sent to the parent
        pipe.send((True, traceback.format_exc()))
        return
    pipe.send((False, None))
    loop = asyncio.get_running_loop()
    try:
        while (called := await loop.run_in_executor(None, pipe.recv))[0] != _CLOSE:
            pipe.send(await _execute(workload, *called))
    finally:
        await workload.close()


async def _execute(workload: Workload, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return False, await getattr(workload, method)(*arguments)
    except Exception:  # noqa: BLE001 - sent to the parent
        return True, traceback.format_exc()
