"""Who has the bank of a state directory open, and how they are made to close it.

Whoever opens the bank of a sandbox holds a shared lock on one file. The sandbox pauses the bank by writing another
file, upon which they close it, and then takes the lock alone. The kernel drops the lock of a process that dies.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from billfold.cli.context import CliError
from billfold.platform.clock import monotonic
from billfold.platform.errors import Refused

POLL_SECONDS = 0.05
PAUSE_SECONDS = 20.0
"""How long a pause waits for those who have the bank open."""
SANDBOX_LOCK = "sandbox.lock"
"""Held by the running sandbox of a state directory."""
_LOCK, _PAUSED = "bank.lock", "bank.paused"


def is_paused(state_dir: Path) -> bool:
    """Tell whether whoever has the bank open is to close it."""
    return (state_dir / _PAUSED).exists()


@asynccontextmanager
async def bank_lease(state_dir: Path) -> AsyncIterator[None]:
    """Hold the bank open; a pause is waited for. Raises CliError when whoever paused the bank is gone."""
    state_dir.mkdir(parents=True, exist_ok=True)
    while True:
        while is_paused(state_dir):
            _check_sandbox_runs(state_dir)
            await asyncio.sleep(POLL_SECONDS)
        file = _try_lock(state_dir / _LOCK, fcntl.LOCK_SH)
        if file is not None and not is_paused(state_dir):
            break
        _release(file)
        await asyncio.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        _release(file)


@asynccontextmanager
async def until_paused(state_dir: Path, stop: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set when `stop` is, or when the bank is to be closed."""
    ended = asyncio.Event()

    async def watch() -> None:
        while not (stop.is_set() or is_paused(state_dir)):
            await asyncio.sleep(POLL_SECONDS)
        ended.set()

    task = asyncio.create_task(watch())
    try:
        yield ended
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def paused(state_dir: Path, *, is_whole: Callable[[], bool]) -> AsyncIterator[None]:
    """Let nobody have the bank open in the meantime. Raises Refused `sandbox-busy` when somebody does not close it.

    The pause continues afterwards unless the bank `is_whole`: the next start of the sandbox completes it.
    """
    (state_dir / _PAUSED).touch()
    file = None
    try:
        file = await _lock_alone(state_dir / _LOCK)
        yield
    finally:
        if is_whole():
            end_pause(state_dir)
        _release(file)


def end_pause(state_dir: Path) -> None:
    """Let the bank be opened again, also after a sandbox that was killed during a pause."""
    (state_dir / _PAUSED).unlink(missing_ok=True)


async def _lock_alone(path: Path) -> int:
    deadline = monotonic() + PAUSE_SECONDS
    while (file := _try_lock(path, fcntl.LOCK_EX)) is None:
        if monotonic() > deadline:
            raise Refused(
                "sandbox-busy", f"Something that uses the bank did not end within {PAUSE_SECONDS:.0f} seconds."
            )
        await asyncio.sleep(POLL_SECONDS)
    return file


def _check_sandbox_runs(state_dir: Path) -> None:
    free = _try_lock(state_dir / SANDBOX_LOCK, fcntl.LOCK_SH)
    if free is not None:
        _release(free)
        raise CliError("A fork or rewind was interrupted.", "Start `billfold sandbox`, which completes or undoes it.")


def _try_lock(path: Path, kind: int) -> int | None:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _release(file: int | None) -> None:
    if file is not None:
        fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough: a forked child has the same lock open
        os.close(file)
