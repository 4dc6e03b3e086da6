"""Starts the process that looks into a file, and waits for its verdict."""

from __future__ import annotations

import asyncio
import sys

from billfold.documents.inspection import child
from billfold.documents.ports import FileKind, FileRefused

PATIENCE_SECONDS = 20.0
AT_ONCE = 2
"""How many files are looked into at a time: a crowd of uploads waits rather than fills memory."""
_TOO_MUCH = "The file takes too much memory or time to open."


class ChildInspection:
    """Looks into files, each in a process of its own."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def inspect(self, content: bytes, kind: FileKind) -> None:
        """Return when the file is what it says and carries nothing that acts.

        Raises FileRefused with a sentence for whoever sent it.
        """
        async with self._turns:
            status, told = await _look(content, kind)
        if status == child.REFUSED:
            raise FileRefused(told)
        if status != 0:
            raise FileRefused(_TOO_MUCH)


async def _look(content: bytes, kind: FileKind) -> tuple[int, str]:
    opened = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",  # nothing of this process's surroundings
        child.__file__,
        kind.name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        out, _ = await asyncio.wait_for(opened.communicate(content), PATIENCE_SECONDS)
    except TimeoutError:
        return 1, ""
    finally:
        if opened.returncode is None:
            opened.kill()
            await opened.wait()
    return opened.returncode or 0, out.decode(errors="replace").strip()
