"""Workers that kill themselves after a number of steps: calls of the database or the disk."""

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
from tests.simulation.forks import Workers, fork_workers
from tests.support.whole_bank import close_bank, open_bank

from billfold.payments.on_us.worker import execute_all_pending
from billfold.platform.database import background_work
from billfold.platform.telemetry.logs import configure_logging
from billfold.wiring.scheduled_jobs import file_receivers
from billfold.wiring.worker import Worker


def dying_workers(dsn, folder):
    """Return the workers of a bank with files in this folder."""
    with (folder / "worker.log").open("ab") as log:
        return Workers(__name__, dsn, folder, log=log)


def die_after(steps):
    """Kill this process after this many steps; return the function that counts a step."""
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


async def work(steps):
    """Do the money work of `billfold worker`, without pauses, until the process dies."""
    dsn, folder = sys.argv[1:]
    bank = await open_bank(dsn, rails_dir=Path(folder, "rails"), files_dir=Path(folder, "files"))
    if steps:
        background_work.LASTS = timedelta(seconds=0.1)  # a worker that died is followed by the next at once
        die_after(steps)
    worker = Worker(bank, execute_all_pending, *file_receivers(), pause_seconds=0.005)
    await worker.run(asyncio.Event())


async def warm_up(dsn):
    """Open the bank once before forking, so that the forked processes share its market."""
    await close_bank(await open_bank(dsn))


if __name__ == "__main__":
    configure_logging("WARNING")
    asyncio.run(warm_up(sys.argv[1]))
    fork_workers(work)
