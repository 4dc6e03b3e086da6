"""Runs the tasks of a sandbox, one at a time, in the process that started it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID

import msgspec
import structlog

from billfold.cli.context import CliContext, Database, with_connection
from billfold.cli.process_supervisor import Supervisor
from billfold.data_keys.keys import DataKeys
from billfold.migrations import runner
from billfold.platform.clock import wall_now
from billfold.platform.database.pool import create_pool
from billfold.platform.dates import iso_z
from billfold.platform.errors import BillfoldError, InvariantError, Refused
from billfold.platform.settings.settings import Settings
from billfold.sandbox.control import socket
from billfold.sandbox.control.socket import SandboxTask, TaskStatus
from billfold.sandbox.forks.copies import OPENING, BankCopies
from billfold.sandbox.running_sandbox import SandboxFile, read_sandbox_file, require_sandbox_file, write_sandbox_file
from billfold.sandbox.scenarios import interventions
from billfold.sandbox.scenarios.interventions import Interventions
from billfold.sandbox.scenarios.player import SCENARIOS, play
from billfold.verify.runner import verify_bank

log = structlog.get_logger(__name__)

TASKS_MAX = 50
"""Maximum number of tasks that are remembered."""


class Progress:
    """Records the progress of a task."""

    def __init__(self, task: SandboxTask) -> None:
        self._task = task

    def begin(self, title: str) -> None:
        """Begin the next step; the one before it is completed."""
        self.end(TaskStatus.COMPLETED)
        self._task.steps.append(socket.SandboxTaskStep(title=title, status=TaskStatus.RUNNING, detail=None))

    def note(self, detail: str) -> None:
        """Record the result of the current step."""
        self._task.steps[-1].detail = detail

    def end(self, status: TaskStatus) -> None:
        """End the current step, if there is one."""
        if self._task.steps and self._task.steps[-1].status == TaskStatus.RUNNING:
            self._task.steps[-1].status = status


class SandboxServices(Protocol):
    """The services of the sandbox's process that tasks use."""

    def without_counterparts(self) -> AbstractAsyncContextManager[None]:
        """Stop the processes that have files of the bank open for the duration of the block."""

    async def upgrade(self, dsn: str) -> None:
        """Migrate a database of an earlier release to this one."""

    def after_rewind(self) -> None:
        """Write the client's data of the current bank."""

    async def play(self, name: str, progress: Progress) -> None:
        """Play a scenario to its end."""


class SandboxTasks:
    """The tasks of one sandbox."""

    def __init__(self, copies: BankCopies, surroundings: SandboxServices) -> None:
        self._copies = copies
        self._surroundings = surroundings
        self._tasks: dict[UUID, SandboxTask] = {}
        self._running: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def answer(self, content: socket.ControlRequest) -> object:
        """Return the result of a request. Raises BillfoldError."""
        if isinstance(content, socket.StartTask):
            return await self.start(content)
        if isinstance(content, socket.ListForks):
            return self._copies.list_forks()
        if isinstance(content, socket.DropFork):
            await self.drop(content.name)
            return None
        return list(reversed(self._tasks.values()))

    async def start(self, wanted: socket.StartTask) -> SandboxTask:
        """Start a task and return it, or the one already started with its id. Raises Refused, NotFound."""
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
        """Cancel the current task."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _check_idle(self) -> None:
        if self._running is not None and not self._running.done():
            raise Refused("sandbox-busy", "The sandbox is busy with another task. Wait until it has ended.")

    async def _work_of(self, wanted: socket.StartTask) -> Callable[[Progress], Awaitable[object]]:
        """Return the function of a task. Raises Refused, NotFound if it cannot be started."""
        name = wanted.name
        if wanted.kind == socket.TaskKind.FORK:
            await self._copies.check_room(name)
            return lambda progress: self._fork(name, progress)
        if wanted.kind == socket.TaskKind.PLAY:
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
            with suppress(Exception):  # otherwise the next task or start removes its remains
                await self._copies.recover()
            task.status = TaskStatus.FAILED
        else:
            task.status = TaskStatus.COMPLETED
        progress.end(task.status)
        task.ended_at = iso_z(wall_now())

    async def _fork(self, name: str, progress: Progress) -> None:
        progress.begin("Waiting for running requests")
        async with self._copies.pause():
            progress.begin("Copying the bank")
            await self._copies.copy(name)

    async def _rewind(self, name: str, progress: Progress) -> None:
        progress.begin("Copying the fork")
        await self._surroundings.upgrade(await self._copies.prepare(name))
        progress.begin("Waiting for running requests")
        async with self._copies.pause(), self._surroundings.without_counterparts():
            progress.begin("Replacing the bank")
            await self._copies.replace_bank(name)
            self._surroundings.after_rewind()
        progress.begin("Removing the bank that was replaced")
        await self._copies.drop_previous()


CARD_PROCESSOR, LOCAL_CHAIN, DEALERS, WORKER = "card processor", "local chain", "dealers", "worker"
_ADDRESSES = (
    "base_url",
    "partner_url",
    "host",
    "http_url",
    "docs_url",
    "clock_url",
    "ca_file",
    "auth_url",
    "customer_url",
    "card_network",
    "settings",
)


@dataclass(frozen=True)
class RunningSandbox:
    """One sandbox that runs in this process."""

    context: CliContext
    settings: Settings
    database: Database
    _: KW_ONLY
    supervisor: Supervisor
    copies: BankCopies
    saved: SandboxFile

    def without_counterparts(self) -> AbstractAsyncContextManager[None]:
        """Stop the card processor, the local chain and the dealers for the duration of the block."""
        return self.supervisor.stopped_children(CARD_PROCESSOR, LOCAL_CHAIN, DEALERS)

    async def upgrade(self, dsn: str) -> None:
        """Migrate a database of an earlier release to this one."""
        # Even if nothing is pending: a copy lacks the privileges of the database itself.
        if await with_connection(dsn, runner.up):
            await self.context.initialize_database(self.settings, dsn)

    def after_rewind(self) -> None:
        """Write the addresses of this start into the credentials of the current bank."""
        state_dir = self.settings.state_dir
        restored = read_sandbox_file(state_dir) or self.saved
        here = {name: getattr(self.saved, name) for name in _ADDRESSES}
        write_sandbox_file(state_dir, msgspec.structs.replace(restored, **here))

    async def play(self, name: str, progress: Progress) -> None:
        """Play a scenario to its end."""
        scenario = SCENARIOS[name]
        seed = await with_connection(self.database.dsn, lambda conn: conn.fetchval("SELECT seed FROM bank"))
        credentials = require_sandbox_file(self.settings.state_dir)
        try:
            outside = self._interventions(asyncio.get_running_loop())
            await asyncio.to_thread(play, scenario, credentials, outside, bank_seed=seed, progress=progress)
        finally:
            await self._change_settings({})
        progress.begin("Verifying the ledger")
        progress.note(await self._verify())

    def _interventions(self, loop: asyncio.AbstractEventLoop) -> Interventions:
        def block(work: Callable[..., Awaitable[None]], *fixed: object) -> Callable[..., None]:
            def run(*values: object) -> None:
                asyncio.run_coroutine_threadsafe(_awaited(work(*fixed, *values)), loop).result()

            return run

        return Interventions(
            shift_rates=block(self._change_market, interventions.shift_rates),
            close_market=block(self._change_market, interventions.close_market),
            quote_prices=block(self._operate, interventions.quote_prices),
            place_orders=block(self._operate, interventions.place_orders),
            cancel_order=block(self._operate, interventions.cancel_order),
            send_instruction=block(self._operate, interventions.send_instruction),
            change_settings=block(self._change_settings),
            kill_worker=block(self.supervisor.kill, WORKER),
        )

    async def _operate(self, work: Callable[..., Awaitable[None]], *values: object) -> None:
        async with self.context.bank(self.settings, self.database.dsn) as bank:
            await work(bank, *values)

    async def _change_settings(self, changed: Mapping[str, str]) -> None:
        """Let every process open the bank again with other settings."""
        box = require_sandbox_file(self.settings.state_dir)
        if box.changed_settings != changed:
            async with self.copies.pause():
                changed_box = msgspec.structs.replace(box, changed_settings=dict(changed))
                write_sandbox_file(self.settings.state_dir, changed_box)

    async def _change_market(self, work: Callable[..., Awaitable[None]], *values: object) -> None:
        """Change the market, as the owner, while no process has the bank open: every process reads it again."""
        vault, owner = self.context.vault(self.settings), self.database.owner_dsn
        async with self.copies.pause(), await create_pool(owner, max_size=1) as pool, pool.acquire() as conn:
            await work(conn, vault, *values)

    async def _verify(self) -> str:
        """Verify the ledger and report its size. Raises InvariantError."""
        async with self.context.bank(self.settings, self.database.dsn) as bank, bank.pool.acquire() as conn:
            report = await verify_bank(conn, vault=bank.vault, data_keys=bank.ports[DataKeys])
        if report.findings:
            raise InvariantError(f"{len(report.findings)} findings, the first: {report.findings[0]}")
        return "Every row is as it was written."


@asynccontextmanager
async def perform_tasks(state_dir: Path, copies: BankCopies, sandbox: RunningSandbox) -> AsyncIterator[None]:
    """Run the requested tasks for the duration of the block."""
    tasks = SandboxTasks(copies, sandbox)
    try:
        async with socket.control_socket(state_dir, tasks.answer):
            yield
    finally:
        await tasks.close()


async def _awaited(work: Awaitable[None]) -> None:
    await work
