"""Child processes of `serve` and `sandbox`: one that exits is restarted, and all stop together."""

import asyncio
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path

from billfold.cli.context import CliError
from billfold.platform.clock import monotonic

STOP_SECONDS = 20.0
RESTART_SECONDS = 1.0
"""Delay before a process that exited at once is restarted."""
WATCH_SECONDS = 1.0
_SUPERVISOR = "SUPERVISOR_PID"
"""Set in a child's environment, because its parent may have exited before it asks for the parent's id."""

StepReporter = Callable[[str], None]


class ChildProcess:
    """One process under supervision, and the log it writes to."""

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        *,
        log: Path | None,
        environment: Mapping[str, str],
        listener: socket.socket | None,
    ) -> None:
        self.name = name
        self.words = words
        self.log = log
        self.environment = environment
        self.listener = listener
        self.process: asyncio.subprocess.Process | None = None
        self.restarts: asyncio.Task[None] | None = None
        self.starts = 0


class Supervisor:
    """Starts children, restarts them when they exit, and stops them at the end."""

    def __init__(self, environment: Mapping[str, str], report: StepReporter, *, watch: Callable[[], None]) -> None:
        self._environment = environment
        self._report = report
        self._watch = watch
        self._children: list[ChildProcess] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(
        self,
        name: str,
        words: Sequence[str],
        log: Path | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        listener: socket.socket | None = None,
    ) -> ChildProcess:
        """Start a process and restart it from now on.

        Without a log it writes to our output, without an `environment` it inherits ours. It inherits the `listener`,
        whose descriptor is the last of its arguments: clients that connect while it restarts wait.
        """
        if not self._tasks:
            self._tasks.append(asyncio.create_task(self._run_watch()))
        own = self._environment if environment is None else environment
        child = ChildProcess(name, words, log=log, environment=own, listener=listener)
        await self._spawn(child)
        self._children.append(child)
        child.restarts = asyncio.create_task(self._restart_on_exit(child))
        return child

    @asynccontextmanager
    async def stopped_children(self, *names: str) -> AsyncIterator[None]:
        """Stop these children for the duration of the block."""
        stopped = [child for child in self._children if child.name in names]
        await self._end(stopped)
        try:
            yield
        finally:
            for child in stopped:
                await self._spawn(child)
                child.restarts = asyncio.create_task(self._restart_on_exit(child))

    async def kill(self, name: str) -> None:
        """Kill a child, as a crash would; it is started again."""
        child = next(each for each in self._children if each.name == name)
        assert child.process is not None
        os.killpg(child.process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Terminate every child, and kill those that do not exit."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._end(self._children)

    async def _end(self, children: Sequence[ChildProcess]) -> None:
        """Stop restarting these, and terminate them."""
        tasks = [child.restarts for child in children if child.restarts is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(self._terminate(child) for child in children))

    async def _run_watch(self) -> None:
        """Watch what the children depend on."""
        while True:
            try:
                await asyncio.to_thread(self._watch)
            except CliError as error:
                self._report(f"{error} {error.next_step}")
            await asyncio.sleep(WATCH_SECONDS)

    async def _restart_on_exit(self, child: ChildProcess) -> None:
        while True:
            assert child.process is not None
            began = monotonic()
            status = await child.process.wait()
            self._report(f"{child.name} exited with {status}; restarting")
            if monotonic() - began < RESTART_SECONDS:
                await asyncio.sleep(RESTART_SECONDS)
            await self._spawn(child)

    async def _spawn(self, child: ChildProcess) -> None:
        if child.log is not None:
            child.log.parent.mkdir(parents=True, exist_ok=True)
        inherited = () if child.listener is None else (child.listener.fileno(),)
        with nullcontext() if child.log is None else child.log.open("ab") as log:
            # A separate process group: Ctrl-C reaches only the supervisor, and no grandchild is left.
            child.process = await asyncio.create_subprocess_exec(
                *child.words,
                *map(str, inherited),
                pass_fds=inherited,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**child.environment, _SUPERVISOR: str(os.getpid())},
                start_new_session=True,
            )
        child.starts += 1

    async def _terminate(self, child: ChildProcess) -> None:
        process = child.process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            self._report(f"{child.name} does not exit; killing it")
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what remains of its group
        await process.wait()


def exit_with_parent() -> None:
    """Exit this process when its parent is gone, for whatever reason; kill it if it does not exit."""
    forked_by = multiprocessing.parent_process()
    parent = forked_by.pid if forked_by else int(os.environ.get(_SUPERVISOR, os.getppid()))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def stop_on_signals() -> asyncio.Event:
    """Return an event that is set when this process receives SIGINT, SIGTERM or SIGHUP."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    return stop
