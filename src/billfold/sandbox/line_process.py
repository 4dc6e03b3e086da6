"""A simulated counterpart in a separate process: one line per request to it, one line per response from it.

Its files are its own: secret files are written atomically, and readable only by their owner.
"""

import asyncio
import os
import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from billfold.cli.python_process import python_command
from billfold.platform.errors import Unavailable

Request = TypeVar("Request")
TIMEOUT_SECONDS = 10.0
"""Timeout of a request, including the requests queued before it."""
_RETRY_AFTER_SECONDS = 5
_LINE_MAX_BYTES = 1 << 16


def environment_of_others() -> Mapping[str, str]:
    """Return the environment of a process outside the bank: without the settings of the bank."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BILLFOLD_")}


class LineProcess:
    """Runs `python -m MODULE FOLDER` from the first request on, and restarts it once it has ended.

    A request that the process did not answer before it ended is sent once more: requests are safe to repeat.
    """

    def __init__(self, module: str, folder: Path, name: str) -> None:
        self._words = (module, str(folder))
        self._name = name
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def request(self, content: object) -> dict[str, Any]:
        """Return the response to a request, both as JSON. Raises Unavailable."""
        request = msgspec.json.encode(content) + b"\n"
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._lock:
                line = await self._exchange(request)
        except (OSError, TimeoutError, EOFError):
            detail = f"The {self._name} does not answer."
            raise Unavailable(detail, retry_after_seconds=_RETRY_AFTER_SECONDS) from None
        return msgspec.json.decode(line, type=dict[str, Any])

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _exchange(self, request: bytes) -> bytes:
        try:
            line = await self._send(request) or await self._send(request)
        except BaseException:
            await self.close()  # a late response would be mistaken for another's
            raise
        if not line:
            raise EOFError
        return line

    async def _send(self, request: bytes) -> bytes:
        """Send a request; return its response, or nothing if the process ends first."""
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *python_command("-m", *self._words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment_of_others(),
                limit=_LINE_MAX_BYTES,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        line = b""
        with suppress(ConnectionError):
            process.stdin.write(request)
            await process.stdin.drain()
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            await self.close()
            return b""
        return line


def serve_lines(request: type[Request], answer: Callable[[Request], object]) -> None:
    """Answer each line of the input with one line of output, until the input ends. The process leaves no core dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    read = msgspec.json.Decoder(request)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(answer(read.decode(line))) + b"\n")
        sys.stdout.buffer.flush()


def kept_file(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the content of the file, created by the first process."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(make())
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_bytes()


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, never readable by anybody but its owner."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
    draft.replace(path)
