"""Run `billfold simulate` with the options on each line of the input, all on copies of one founded bank.

A line is JSON: a list of options, and code that is run first in the process of that life. The answer is a line, too:
the exit status, and what was printed.
"""

import os
import sys
import tempfile
import traceback
from contextlib import contextmanager

import msgspec

from simulation import cli
from simulation.boundary import run_again_with_fixed_hashes


def live(options: list[str], planted: str) -> tuple[int, str]:
    """Return the status of a process, and what it printed."""
    with tempfile.TemporaryFile() as told:
        child = os.fork()
        if not child:
            os.dup2(told.fileno(), 1)
            os.dup2(told.fileno(), 2)
            status = 1
            try:
                exec(planted, {})
                cli.app(options)
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 1
            except BaseException:  # noqa: BLE001 - it is told
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        told.seek(0)
        return os.waitstatus_to_exitcode(status), told.read().decode()


if __name__ == "__main__":
    run_again_with_fixed_hashes()
    with cli.ground() as founded:
        cli.ground = contextmanager(lambda: (each for each in (founded,)))
        for line in sys.stdin:
            print(msgspec.json.encode(live(*msgspec.json.decode(line))).decode(), flush=True)
