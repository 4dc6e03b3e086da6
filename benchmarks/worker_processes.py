"""Processes that run a workload on command, each on an event loop of its own.

A workload is opened once, then prepares and runs; between runs it sleeps and costs nothing.
Preparing is not timed: orders are turned into calls before the start.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import traceback
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

import uvloop

from benchmarks.measurements import peak_memory_mib

# Workers are forked from one process that has imported everything.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["benchmarks.cli"])
_OPEN_SECONDS = 120.0
_END_SECONDS = 30.0


class WorkloadError(RuntimeError):
    """A workload failed; the text is its traceback."""


class Workload(Protocol):
    """What a process can do."""

    async def prepare(self, task: Any) -> Any:
        """Do what is not timed and answer."""

    async def run(self) -> Any:
        """Run what was prepared and answer with its timings."""

    async def close(self) -> None:
        """Release everything."""


class Worker:
    """A workload in a process of its own, on asyncio's own loop unless told otherwise."""

    def __init__(self, opener: Callable[..., Awaitable[Workload]], *, fast: bool = False, **arguments: Any) -> None:
        ours, theirs = multiprocessing.Pipe()
        self._pipe = ours
        self._process = _CONTEXT.Process(target=_run_process, args=(theirs, opener, arguments, fast))
        self._process.start()
        theirs.close()
        self._receive(_OPEN_SECONDS)

    def prepare(self, task: Any) -> Any:
        """Have it do something that is not timed, and return its answer."""
        self._pipe.send(("prepare", task))
        return self._receive()

    def start(self) -> None:
        """Tell it to run what it prepared."""
        self._pipe.send(("run", None))

    def finish(self) -> Any:
        """Wait until it has run, and return what it answers."""
        return self._receive()

    def run(self, task: Any) -> Any:
        """Prepare, run, and return the answer."""
        self.prepare(task)
        self.start()
        return self.finish()

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def peak_memory_mib(self) -> float:
        """Return the most memory it has held."""
        return peak_memory_mib(self.pid)

    def close(self) -> None:
        """End the process, kindly first. Does nothing the second time."""
        if self._process.is_alive():
            self._pipe.send(("close", None))
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


def run_together(processes: Sequence[Worker]) -> list[Any]:
    """Start all that are prepared at once, wait for all, and return their answers."""
    for process in processes:
        process.start()
    return [process.finish() for process in processes]


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
        while True:
            verb, task = await loop.run_in_executor(None, pipe.recv)
            if verb == "close":
                return
            pipe.send(await _execute(workload, verb, task))
    finally:
        await workload.close()


async def _execute(workload: Workload, verb: str, task: Any) -> tuple[bool, Any]:
    try:
        return False, await (workload.run() if verb == "run" else workload.prepare(task))
    except Exception:  # noqa: BLE001 - sent to the parent
        return True, traceback.format_exc()
