"""Runs the checker of histories, a program in Go around porcupine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent / "porcupine"


def find_go() -> str | None:
    """Return the program `go`, from the path or where its installer puts it."""
    return shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")


def check(history: Path) -> int:
    """Print the verdict on a history; return 0 if it is linearizable, 1 if not or if that cannot be told.

    What is not is drawn into a page next to the history.
    """
    go = find_go()
    if go is None:
        raise SystemExit("The checker needs Go: https://go.dev/dl/.")
    page = history.with_suffix(".html")
    return subprocess.run([go, "run", ".", history.absolute(), page.absolute()], cwd=FOLDER, check=False).returncode
