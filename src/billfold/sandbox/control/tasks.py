"""Does the tasks of a sandbox, one at a time, in the process that started it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import structlog

from billfold.platform.clock import wall_now
from billfold.platform.dates import iso_z
from billfold.platform.errors import BillfoldError, Refused
from billfold.sandbox.control.socket import (
    ControlRequest,
    DropFork,
    ListForks,
    SandboxTask,
    SandboxTaskStep,
    StartTask,
    TaskKind,
    TaskStatus,
)
from billfold.sandbox.forks.copies import OPENING, BankCopies

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

log = structlog.get_logger(__name__)

TASKS_MAX = 50
"""How many tasks are remembered."""


class Progress:
    """Where a task writes how far it is."""

    def __init__(self, task: SandboxTask) -> None:
        self._task = task

    def begin(self, title: str) -> None:
        """Begin the next step; the one before it is completed."""
        self.end(TaskStatus.COMPLETED)
        self._task.steps.append(SandboxTaskStep(title=title, status=TaskStatus.RUNNING, detail=None))

    def note(self, detail: str) -> None:
        """Say what came of the step under way."""
        self._task.steps[-1].detail = detail

    def end(self, status: TaskStatus) -> None:
        """End the step under way, if there is one."""
        if self._task.steps and self._task.steps[-1].status == TaskStatus.RUNNING:
            self._task.steps[-1].status = status


class Surroundings(Protocol):
    """What the tasks need of the process that runs the sandbox."""

    def without_counterparts(self) -> AbstractAsyncContextManager[None]:
        """Let the processes that have files of the bank open not run meanwhile."""

    async def upgrade(self, dsn: str) -> None:
        """Bring a database that an earlier release left to the shape of this one."""

    def after_rewind(self) -> None:
        """Write down what a client needs to know of the bank that is there now."""

    async def play(self, name: str, progress: Progress) -> None:
        """Play a scenario to its end."""


class SandboxTasks:
    """The tasks of one sandbox."""

    def __init__(self, copies: BankCopies, surroundings: Surroundings) -> None:
        self._copies = copies
        self._surroundings = surroundings
        self._tasks: dict[UUID, SandboxTask] = {}
        self._running: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def answer(self, content: ControlRequest) -> object:
        """Return the result of a request. Raises BillfoldError."""
        if isinstance(content, StartTask):
            return await self.start(content)
        if isinstance(content, ListForks):
            return self._copies.list_forks()
        if isinstance(content, DropFork):
            await self.drop(content.name)
            return None
        return list(reversed(self._tasks.values()))

    async def start(self, wanted: StartTask) -> SandboxTask:
        """Start a task and return it, or the one that was started under its id. Raises Refused, NotFound."""
        async with self._starting:
            if wanted.id in self._tasks:
                return self._tasks[wanted.id]
            self._check_idle()
            work = await self._work_of(wanted)
            task = SandboxTask(
                id=wanted.id,
                kind=wanted.kind,
                name=wanted.name,
                status=TaskStatus.RUNNING,
                detail=None,
                steps=[],
                started_at=iso_z(wall_now()),
                ended_at=None,
            )
            self._tasks[task.id] = task
            if len(self._tasks) > TASKS_MAX:
                del self._tasks[next(iter(self._tasks))]
            self._running = asyncio.create_task(self._run(task, work))
            return task

    async def drop(self, name: str) -> None:
        """Remove a fork. Raises Refused, NotFound."""
        async with self._starting:
            self._check_idle()
            if name == OPENING:
                raise Refused("fork-needed", "A reset returns to this fork. It cannot be removed.")
            await self._copies.drop(name)

    async def close(self) -> None:
        """End the task under way."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _check_idle(self) -> None:
        if self._running is not None and not self._running.done():
            raise Refused("sandbox-busy", "The sandbox is at another task. Wait until it has ended.")

    async def _work_of(self, wanted: StartTask) -> Callable[[Progress], Awaitable[object]]:
        """Return what a task does. Raises Refused, NotFound if it cannot be begun."""
        name = wanted.name
        if wanted.kind == TaskKind.FORK:
            await self._copies.check_room(name)
            return lambda progress: self._fork(name, progress)
        if wanted.kind == TaskKind.PLAY:
            return lambda progress: self._surroundings.play(name, progress)
        self._copies.get(name)
        return lambda progress: self._rewind(name, progress)

    async def _run(self, task: SandboxTask, work: Callable[[Progress], Awaitable[object]]) -> None:
        progress = Progress(task)
        try:
            await work(progress)
        except Exception as error:
            log.warning("sandbox_task_failed", kind=task.kind, name=task.name, exc_info=error)
            task.detail = error.detail if isinstance(error, BillfoldError) else f"{type(error).__name__}: {error}"
            with suppress(Exception):  # what it has left over is removed by the next task or start otherwise
                await self._copies.recover()
            task.status = TaskStatus.FAILED
        else:
            task.status = TaskStatus.COMPLETED
        progress.end(task.status)
        task.ended_at = iso_z(wall_now())

    async def _fork(self, name: str, progress: Progress) -> None:
        progress.begin("Waiting for requests under way")
        async with self._copies.pause():
            progress.begin("Copying the bank")
            await self._copies.copy(name)

    async def _rewind(self, name: str, progress: Progress) -> None:
        progress.begin("Copying the fork")
        await self._surroundings.upgrade(await self._copies.prepare(name))
        progress.begin("Waiting for requests under way")
        async with self._copies.pause(), self._surroundings.without_counterparts():
            progress.begin("Replacing the bank")
            await self._copies.replace_bank(name)
            self._surroundings.after_rewind()
        progress.begin("Removing the bank that was replaced")
        await self._copies.drop_previous()
