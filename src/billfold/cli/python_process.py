"""Python processes of the bank: how a child is started, and the garbage collector of a long-lived one.

A child imports nothing from the folder that it is started in, where others may leave files.
"""

import gc
import os
import sys


def python_command(*words: str) -> tuple[str, ...]:
    """Return the command line of this Python with these arguments."""
    return (sys.executable, "-P", *words)


def protect_children() -> None:
    """Prevent any Python that a library starts, such as a process of a pool, from importing from the current folder."""
    os.environ["PYTHONSAFEPATH"] = "1"


THRESHOLD = 250_000
"""Full caches stay below it (97,000 after 20,000 transfers), so only leaked cycles cause a collection."""


def start_collecting_garbage() -> None:
    """Call once the modules of a command are loaded: until then scans find nothing, and take a fifth of the time."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def tune_garbage_collector() -> None:
    """Call once a process has loaded its permanent objects, which are then never scanned again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD)
