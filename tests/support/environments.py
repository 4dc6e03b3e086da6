"""Empty environments of Python, as those who install a wheel have."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

UV_PATH = f"{Path(__file__).parents[2] / '.uv/bin'}{os.pathsep}{os.environ['PATH']}"


def new_environment(folder, *pythons):
    """Make an empty environment of the first Python that this machine has, or of the bank's; return its Python."""
    for python in (*pythons, sys.executable):
        made = subprocess.run([_uv(), "venv", "--quiet", "--python", python, folder / "venv"], check=False)
        if made.returncode == 0:
            return folder / "venv/bin/python"
    raise AssertionError("no environment can be made")


def install(python, *words):
    """Install packages into an environment."""
    command = [_uv(), "pip", "install", "--quiet", "--python", python, *words]
    subprocess.run(command, check=True, env=os.environ | _index())


def _uv():
    uv = shutil.which("uv", path=UV_PATH)
    assert uv is not None
    return uv


def _index():
    """Return the package index configured for pip on this machine."""
    ask = [str(Path(sys.executable).resolve()), "-m", "pip", "config", "get", "global.index-url"]
    index = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    return {"UV_DEFAULT_INDEX": index} if index and "UV_DEFAULT_INDEX" not in os.environ else {}


def processor_seconds(python, code):
    """Return the processor time of a program."""
    before = os.times()
    subprocess.run([python, "-c", code], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
