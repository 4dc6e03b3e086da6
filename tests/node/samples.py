"""Samples in TypeScript, run by Node.js without a compiler: it strips the types."""

import os
import subprocess

import msgspec
from tests.node.runtime import FOLDER, NODE


def run_typescript(run, *, parsed=()):
    """Return what each program printed last, by its name; those that are only parsed must be programs."""
    flags = "--experimental-vm-modules --disable-warning=ExperimentalWarning"
    options = f"{flags} {os.environ.get('NODE_OPTIONS', '')}"
    answer = subprocess.run(
        [NODE, FOLDER / "run_samples.mjs"],
        input=msgspec.json.encode({"run": run, "parsed": parsed}),
        capture_output=True,
        env={**os.environ, "NODE_OPTIONS": options},
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr.decode()
    return msgspec.json.decode(answer.stdout)
