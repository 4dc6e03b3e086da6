"""Workers that die by themselves: after a number of steps, a step being a word with the database
or with the disk.

Run as a program it forks a worker for every number it reads, and writes the worker's own; one that
reads 0 lives on.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
from tests.support.whole_bank import close_bank, open_bank

from billfold.payments.on_us.worker import execute_all_pending
from billfold.platform.database import claims
from billfold.platform.logs import configure_logging
from billfold.wiring.scheduled_jobs import file_receivers
from billfold.wiring.worker import Worker

PATIENCE_SECONDS = 30.0


class DyingWorkers:
    """Starts workers of one bank, each of which ends without warning."""

    def __init__(self, dsn, folder):
        with (folder / "worker.log").open("ab") as log:
            self._spawner = subprocess.Popen(
                [sys.executable, "-m", __name__, dsn, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._worker = 0

    def start(self, steps=0):
        """Start one that dies after so many steps."""
        assert self._spawner.stdin
        assert self._spawner.stdout
        self._spawner.stdin.write(f"{steps}\n")
        self._spawner.stdin.flush()
        self._worker = int(self._spawner.stdout.readline())

    def wait(self):
        """Wait until it has died."""
        late = time.monotonic() + PATIENCE_SECONDS
        while self.is_alive():
            assert time.monotonic() < late, "the worker does not come to its end"
            time.sleep(0.005)

    def is_alive(self):
        try:
            os.kill(self._worker, 0)
        except ProcessLookupError:
            return False
        return True

    def close(self):
        if self._worker:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)
        self._spawner.kill()
        self._spawner.communicate()


def die_after(steps):
    """End this process without warning after so many steps; return what makes one more."""
    left = steps
    driver: Any = asyncpg.Connection
    threads: Any = asyncio
    disk: Any = os

    def step():
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def awaited(work):
        async def then_step(*told, **named):
            done = await work(*told, **named)
            step()
            return done

        return then_step

    def keep(file):
        kept(file)
        step()

    # Statements with values go by the one, those without, as COMMIT, by the other.
    driver._do_execute, driver.execute = awaited(driver._do_execute), awaited(driver.execute)
    kept, disk.fsync = disk.fsync, keep
    threads.to_thread = awaited(threads.to_thread)
    return step


async def work(dsn, folder, steps):
    """What `billfold worker` does with money, without rests, until it dies."""
    bank = await open_bank(dsn, rails_dir=Path(folder, "rails"), files_dir=Path(folder, "files"))
    if steps:
        claims.LASTS = timedelta(seconds=0.1)  # a worker that died is followed by the next at once
        die_after(steps)
    worker = Worker(bank, execute_all_pending, *file_receivers(), pause_seconds=0.005)
    await worker.run(asyncio.Event())


async def warm_up(dsn):
    """Open the bank once, so that its market is known to all that are forked."""
    await close_bank(await open_bank(dsn))


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    configure_logging("WARNING")
    asyncio.run(warm_up(sys.argv[1]))
    for line in sys.stdin:
        worker = os.fork()
        if not worker:
            asyncio.run(work(sys.argv[1], sys.argv[2], int(line)))
        print(worker, flush=True)
