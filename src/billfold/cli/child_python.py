"""Python as a child process: it imports nothing from the folder that it is started in, where others may leave files."""

import os
import sys


def python_command(*words: str) -> tuple[str, ...]:
    """Return the command line of this Python with these arguments."""
    return (sys.executable, "-P", *words)


def protect_children() -> None:
    """Let no Python that a library starts, such as a process of a pool, import from the current folder."""
    os.environ["PYTHONSAFEPATH"] = "1"
