"""A simulated counterpart in a process of its own: a request per line to it, a response per line from it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from billfold.platform.errors import Unavailable

TIMEOUT_SECONDS = 20.0
_RETRY_AFTER_SECONDS = 5
_LINE_MAX_BYTES = 1 << 16


class LineProcess:
    """Runs `python -m MODULE FOLDER` from the first request on, and again once it has ended."""

    def __init__(self, module: str, folder: Path, name: str) -> None:
        self._words = (module, str(folder))
        self._name = name
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def request(self, content: object) -> dict[str, Any]:
        """Return the response to a request, both as JSON. Raises Unavailable."""
        async with self._lock:
            try:
                line = await asyncio.wait_for(self._exchange(msgspec.json.encode(content) + b"\n"), TIMEOUT_SECONDS)
            except BaseException as error:
                await self.close()  # a response that comes later belongs to nobody
                if isinstance(error, (OSError, TimeoutError, EOFError)):
                    detail = f"The {self._name} does not answer."
                    raise Unavailable(detail, retry_after_seconds=_RETRY_AFTER_SECONDS) from None
                raise
        return msgspec.json.decode(line, type=dict[str, Any])

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _exchange(self, request: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LINE_MAX_BYTES,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return line
