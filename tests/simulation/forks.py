"""Processes that start at once: an initialized process forks another for every line it reads.

It answers each line with one of its own.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from typing_extensions import override

PATIENCE_SECONDS = 30.0


class Spawner:
    """Runs a module as a forking program."""

    def __init__(self, module, *arguments, log=None, env=None):
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=env,
        )

    def ask(self, *words):
        """Send a line of words; return the number in the response."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self):
        self._process.kill()
        self._process.communicate()


class Workers(Spawner):
    """Starts workers of one bank, each of which is killed or kills itself."""

    _worker = 0

    def start(self, steps=0):
        """Start a worker that dies after this many steps; 0 means never."""
        self._worker = self.ask(steps)

    def wait(self):
        """Wait for its death."""
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

    def kill(self):
        if self._worker:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)

    @override
    def close(self):
        self.kill()
        super().close()


def fork_workers(work):
    """Fork a worker for each line, which is its number of steps; respond with its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        worker = os.fork()
        if not worker:
            asyncio.run(work(int(line)))
        print(worker, flush=True)
