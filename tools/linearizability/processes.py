"""The processes that are killed, paused and started again: Postgres, `billfold serve`, `billfold worker`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import httpx
import psutil

from benchmarks.server import free_ports
from billfold.ledger.bank import Bank
from billfold.migrations import runner
from billfold.platform.clock import monotonic
from billfold.platform.database import embedded as embedded_postgres
from billfold.platform.settings.settings import Settings
from billfold.wiring import open_bank
from billfold.wiring.cli.serve import child_command_line
from billfold.wiring.cli_context import Wiring
from billfold_client.local import local_client

POSTGRES, SERVE, WORKER = "postgres", "serve", "worker"
STEADY_SECONDS = 90.0
"""The bank is up again so many seconds after a kill."""
_LOG_TAIL = 2000


class Processes:
    """A bank in a folder, with its own Postgres from the beginning; the others are started."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.ca = state_dir / "tls" / "ca.pem"
        self.port, self._http_port = free_ports(2)
        self.postgres = embedded_postgres.start(state_dir)
        self.dsn = self.postgres.dsn_for("billfold")
        self.settings = Settings(state_dir=state_dir, database_url=self.dsn)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @asynccontextmanager
    async def found(self) -> AsyncIterator[Bank]:
        """Yield a new bank, to be filled before anything is started."""
        await self.postgres.create_database("billfold")
        conn = await asyncpg.connect(self.dsn)
        await runner.up(conn)
        await conn.close()
        await open_bank.initialize_database(self.settings, self.dsn)
        async with open_bank.open_bank(self.settings, self.dsn) as bank:
            yield bank

    def start(self, name: str) -> None:
        """Start `serve` or `worker`."""
        environment = Wiring({k: v for k, v in os.environ.items() if not k.startswith("BILLFOLD_")}).environment(
            self.settings, self.dsn, port=self.port, http_port=self._http_port, log_level="WARNING"
        )
        with (self.state_dir / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                child_command_line(name),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_healthy(self) -> None:
        """Return when the server answers. Raises AssertionError with the logs when that takes too long."""
        self.until(self._is_healthy)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait, starting again what has ended. Raises AssertionError with the logs when that takes too long."""
        late = monotonic() + STEADY_SECONDS
        while not condition():
            assert monotonic() < late, self.logs()
            self.look_after()
            time.sleep(0.05)

    def kill(self, name: str, *, whole: bool = False) -> None:
        """End one without warning and start it again.

        Of the server it is mostly the process that answers, which comes back by itself; `whole`
        ends the one that looks after it, and with it all of them.
        """
        if name == POSTGRES:
            postmaster = psutil.Process(self.postgres.pid)
            postmaster.kill()
            while postmaster.is_running() and postmaster.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.01)
            gone, self.postgres = self.postgres, embedded_postgres.start(self.state_dir)
            gone.hold.release()
            return
        process = self._running[name]
        first, *family = self._family(name)
        victim = max(family, key=psutil.Process.create_time) if family and not whole else first
        with suppress(psutil.NoSuchProcess):
            victim.kill()
        if victim is first:
            process.wait()
        self.look_after()

    def pause(self, name: str, seconds: float) -> None:
        """Stop all processes of one for some seconds, as a machine does that has no time for them."""
        paused = self._family(name)
        _signal(paused, signal.SIGSTOP)
        time.sleep(seconds)
        _signal(paused, signal.SIGCONT)

    def look_after(self) -> None:
        """Start again what has ended, as the manager of the machine's services does."""
        for name, process in list(self._running.items()):
            if process.poll() is not None:
                self.start(name)

    def terminate(self) -> None:
        """End both programs as their operator would."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait()

    def close(self) -> None:
        """Kill both programs and stop Postgres."""
        for name in self._running:
            _signal(self._family(name), signal.SIGKILL)
            self._running[name].wait()
        embedded_postgres.stop(self.postgres)

    def logs(self) -> dict[str, str]:
        """Return the end of the log of each program."""
        return {
            name: (self.state_dir / f"{name}.log").read_text(errors="replace")[-_LOG_TAIL:] for name in self._running
        }

    def _family(self, name: str) -> list[psutil.Process]:
        """Return the first process, if it runs, and all below it."""
        pid = self.postgres.pid if name == POSTGRES else self._running[name].pid
        try:
            first = psutil.Process(pid)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _is_healthy(self) -> bool:
        if not self.ca.exists():
            return False
        with suppress(httpx.HTTPError), local_client(f"https://localhost:{self.port}", self.ca) as http:
            return http.get("/health").is_success
        return False


def _signal(processes: list[psutil.Process], number: int) -> None:
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.send_signal(number)
