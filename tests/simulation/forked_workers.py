"""Workers as processes of their own that start at once: forked from one that is warmed up.

Run as a program it forks a worker for every line it reads, and writes the worker's number.
"""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress

from billfold.platform.logs import configure_logging
from billfold.wiring.cli_context import Wiring


class ForkedWorkers:
    """Starts workers of one bank and ends them without warning."""

    def __init__(self, settings, **changes):
        with (settings.state_dir / "worker.log").open("ab") as log:
            self._spawner = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=Wiring(os.environ).environment(settings, settings.database_url, log_level="WARNING", **changes),
            )
        self._worker = 0

    def start(self):
        assert self._spawner.stdin
        assert self._spawner.stdout
        self._spawner.stdin.write("\n")
        self._spawner.stdin.flush()
        self._worker = int(self._spawner.stdout.readline())

    def kill(self):
        with suppress(ProcessLookupError):
            os.kill(self._worker, signal.SIGKILL)

    def close(self):
        self.kill()
        self._spawner.kill()
        self._spawner.communicate()


async def work():
    """What `billfold worker` does."""
    ground = Wiring(os.environ)
    settings = ground.settings()
    configure_logging(settings.log_level)
    async with ground.bank(settings, settings.database_url or "") as bank:
        await ground.work(bank, asyncio.Event())


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        worker = os.fork()
        if not worker:
            asyncio.run(work())
        print(worker, flush=True)
