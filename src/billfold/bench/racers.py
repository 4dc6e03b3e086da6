"""Processes that run a workload when told to, each on an event loop of its own.

A racer is opened once, then prepares and runs laps; between laps it sleeps and costs nothing.
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

from billfold.bench.measure import peak_memory_mib

_OPEN_SECONDS = 120.0
_END_SECONDS = 30.0


class RaceError(RuntimeError):
    """A racer failed; the text is its traceback."""


class Racer(Protocol):
    """What a process can do."""

    async def prepare(self, orders: Any) -> Any:  # noqa: ANN401 - each racer knows its orders
        """Do what is not timed and answer."""

    async def run(self) -> Any:  # noqa: ANN401 - as above
        """Run what was prepared and answer with its laps."""

    async def close(self) -> None:
        """Let go of everything."""


class Child:
    """A racer in a process of its own, on asyncio's own loop unless told otherwise."""

    def __init__(
        self,
        opener: Callable[..., Awaitable[Racer]],
        *,
        fast: bool = False,
        **arguments: Any,  # noqa: ANN401 - the opener's
    ) -> None:
        ours, theirs = multiprocessing.Pipe()
        self._pipe = ours
        self._process = multiprocessing.get_context("spawn").Process(
            target=_live, args=(theirs, opener, arguments, fast), daemon=True
        )
        self._process.start()
        theirs.close()
        self._receive(_OPEN_SECONDS)

    def prepare(self, orders: Any) -> Any:  # noqa: ANN401 - the racer's
        """Have it do something that is not timed, and return its answer."""
        self._pipe.send(("prepare", orders))
        return self._receive()

    def start(self) -> None:
        """Tell it to run what it prepared."""
        self._pipe.send(("run", None))

    def finish(self) -> Any:  # noqa: ANN401 - the racer's
        """Wait until it has run, and return what it answers."""
        return self._receive()

    def run(self, orders: Any) -> Any:  # noqa: ANN401 - the racer's
        """Prepare, run, and return the answer."""
        self.prepare(orders)
        self.start()
        return self.finish()

    def peak_memory_mib(self) -> float:
        """Return the most memory it has held."""
        assert self._process.pid is not None
        return peak_memory_mib(self._process.pid)

    def close(self) -> None:
        """End the process, kindly first. Does nothing the second time."""
        if self._process.is_alive():
            self._pipe.send(("close", None))
            self._process.join(_END_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def _receive(self, seconds: float | None = None) -> Any:  # noqa: ANN401 - the racer's
        try:
            if not self._pipe.poll(seconds):
                raise RaceError("a racer did not open in time")
            failed, answer = self._pipe.recv()
        except EOFError:
            raise RaceError("a racer died") from None
        if failed:
            raise RaceError(answer)
        return answer


def run_together(children: Sequence[Child]) -> list[Any]:
    """Start all that are prepared at once, wait for all, and return their answers."""
    for child in children:
        child.start()
    return [child.finish() for child in children]


def _live(
    pipe: Connection,
    opener: Callable[..., Awaitable[Racer]],
    arguments: dict[str, Any],
    fast: bool,  # noqa: FBT001 - passed by position to a new process
) -> None:
    run = uvloop.run if fast else asyncio.run
    try:
        run(_serve(pipe, opener, arguments))
    except (EOFError, KeyboardInterrupt):
        return


async def _serve(
    pipe: Connection, opener: Callable[..., Awaitable[Racer]], arguments: dict[str, Any]
) -> None:
    try:
        racer = await opener(**arguments)
    except Exception:  # noqa: BLE001 - told to the parent
        pipe.send((True, traceback.format_exc()))
        return
    pipe.send((False, None))
    loop = asyncio.get_running_loop()
    try:
        while True:
            verb, orders = await loop.run_in_executor(None, pipe.recv)
            if verb == "close":
                return
            pipe.send(await _obey(racer, verb, orders))
    finally:
        await racer.close()


async def _obey(racer: Racer, verb: str, orders: Any) -> tuple[bool, Any]:  # noqa: ANN401 - the racer's
    try:
        return False, await (racer.run() if verb == "run" else racer.prepare(orders))
    except Exception:  # noqa: BLE001 - told to the parent
        return True, traceback.format_exc()
