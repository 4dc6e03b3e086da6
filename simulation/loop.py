"""An event loop with virtual time and a seeded order of callbacks, and processes that are killed or put to sleep."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from random import Random
from typing import Any

from typing_extensions import override

TASKS_KEPT = 10_000
_numbers = iter(range(1, 1 << 62))


class Process:
    """One simulated process. If it is dead, its callbacks never run again, nor any `finally`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.sleeps_until = 0.0


OUTSIDE = Process("outside")
current_process: ContextVar[Process] = ContextVar("current_process", default=OUTSIDE)


class NothingHappens(Exception):
    """No callback is ready and no timer is set: everything waits for something that never comes."""


class _Task(asyncio.Task[Any]):
    """A task whose place in a set is the same in every run."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._number = next(_numbers)
        super().__init__(*args, **options)

    __eq__ = object.__eq__

    @override
    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[Any]):
    def __init__(self, **options: Any) -> None:
        self._number = next(_numbers)
        super().__init__(**options)

    __eq__ = object.__eq__

    @override
    def __hash__(self) -> int:
        return self._number


class _Clock:
    """In place of a selector: nothing comes from outside, so waiting is moving the time."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise NothingHappens
        self._loop.now += timeout
        return []

    def close(self) -> None:
        """Hold nothing."""


class SimulationLoop(asyncio.BaseEventLoop):
    """`now` is the virtual time in seconds. Threads and executors do their work at once, in the loop."""

    _ready: Any
    _thread_id: int | None

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.now = 0.0
        self.steps = 0
        self.random = random
        self._selector = _Clock(self)
        self._graveyard: list[_Task] = []
        self._ready = _SeededQueue(self)
        self.set_task_factory(self._new_task)
        self.set_exception_handler(self._on_error)
        self.errors: list[dict[str, Any]] = []

    @override
    def time(self) -> float:
        return self.now

    @override
    def create_future(self) -> _Future:
        return _Future(loop=self)

    def _new_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> _Task:
        task = _Task(coro, loop=loop, **options)
        self._graveyard.append(task)  # a dead process must not be collected: that would run its `finally`
        if len(self._graveyard) > TASKS_KEPT:
            self.drop_done()
        return task

    def drop_done(self) -> None:
        """Drop tasks that have ended: errors that nobody saw are told to `errors`."""
        self._graveyard = [each for each in self._graveyard if not each.done()]

    def _on_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(context)

    @override
    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> _Future:  # type: ignore[override]
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the caller's
            future.set_exception(error)
        return future

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Refuse callbacks of other threads: they come whenever the machine likes."""
        if threading.get_ident() != self._thread_id:
            raise RuntimeError("a thread that no seed controls")

    def start(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine as part of a process."""
        context = Context()
        context.run(current_process.set, process)
        return context.run(self.create_task, work)


class _SeededQueue(deque[Any]):
    """The ready callbacks, taken in a random order; those of dead or sleeping processes are passed over."""

    def __init__(self, loop: SimulationLoop) -> None:
        super().__init__()
        self._loop = loop

    @override
    def popleft(self) -> Any:
        loop = self._loop
        loop.steps += 1
        self.rotate(-loop.random.randrange(len(self)))
        handle = super().popleft()
        process = handle._context.get(current_process, OUTSIDE)
        if process.is_dead:
            return asyncio.Handle(_nothing, (), loop)
        if process.sleeps_until > loop.now:
            loop.call_at(process.sleeps_until, _run_later, loop, handle)
            return asyncio.Handle(_nothing, (), loop)
        return handle


def _run_later(loop: SimulationLoop, handle: asyncio.Handle) -> None:
    loop._ready.append(handle)


def _nothing() -> None:
    """In place of a callback that has to wait."""
