"""Inspects files in a process with little memory, little time and no write access.

A file that exceeds these limits is refused, like a malicious one.
"""

import asyncio
import sys
from pathlib import Path

from billfold.documents import ports
from billfold.platform.errors import Unavailable
from billfold.platform.file_kinds import FileKind

INSPECTION_TIMEOUT_SECONDS = 30.0
_RETRY_AFTER_SECONDS = 5
_CHILD = Path(__file__).with_name("inspection_child.py")
"""Not imported: its patterns take a tenth of a second to compile."""
_REFUSED = 3
"""Its exit status for a file that it refuses."""
_LIMIT_EXCEEDED = "The file takes too much memory or time to open."


class SubprocessFileInspector:
    """Looks into files, each in a process of its own. The caller limits how many at a time."""

    async def inspect(self, content: bytes, kind: FileKind) -> None:
        """Return if the file is of the declared kind and carries no active content.

        Raises UploadRejected with a sentence for the sender, Unavailable if the machine is too busy to inspect it.
        """
        status, reason = await _run_inspection(content, kind)
        if status == _REFUSED:
            raise ports.UploadRejected(reason)
        if status != 0:
            raise ports.UploadRejected(_LIMIT_EXCEEDED)


async def _run_inspection(content: bytes, kind: FileKind) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",  # ignore this process's environment
        _CHILD,
        kind.name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(content), INSPECTION_TIMEOUT_SECONDS)
    except TimeoutError:
        # The CPU limit is lower than that, and it waits for nothing else.
        raise Unavailable("The file waited too long to be opened.", retry_after_seconds=_RETRY_AFTER_SECONDS) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(errors="replace").strip()
