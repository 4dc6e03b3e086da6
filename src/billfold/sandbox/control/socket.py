"""The socket between the servers of a sandbox and the process that started them: a request and a response per line."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import BillfoldError, Refused, Unavailable
from billfold.sandbox.control.types import ControlRequest, ControlResponse

log = structlog.get_logger(__name__)

Result = TypeVar("Result")
Answer = Callable[[ControlRequest], Awaitable[object]]
_PLACE = "control"
"""The file that says where the socket is: a path in a state directory may be too long for one."""
_LINE_MAX_BYTES = 1 << 20
_TIMEOUT_SECONDS = 30.0
_NOT_RUNNING = "Forks and scenarios need `billfold sandbox`, and its bank to be open."


class SandboxControl:
    """Requests of one process to that which started the sandbox of a state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._place = state_dir / _PLACE

    async def request(self, content: ControlRequest, returns: type[Result]) -> Result:
        """Return the result of a request. Raises BillfoldError as the other process does, and Unavailable."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                line = await self._exchange(msgspec.json.encode(content) + b"\n")
        except (OSError, TimeoutError):
            raise Unavailable(_NOT_RUNNING, retry_after_seconds=1) from None
        response = msgspec.json.decode(line, type=ControlResponse)
        if response.code is not None:
            raise Refused(response.code, response.detail)
        return msgspec.convert(response.result, returns)

    async def _exchange(self, line: bytes) -> bytes:
        path = self._place.read_text(encoding="utf-8")
        reader, writer = await asyncio.open_unix_connection(path, limit=_LINE_MAX_BYTES)
        try:
            writer.write(line)
            await writer.drain()
            answer = await reader.readline()
        finally:
            writer.close()
        if not answer:
            raise ConnectionResetError
        return answer


@asynccontextmanager
async def control_socket(state_dir: Path, answer: Answer) -> AsyncIterator[None]:
    """Answer requests meanwhile."""
    folder = Path(tempfile.mkdtemp(prefix="billfold-"))  # its owner's alone
    place = state_dir / _PLACE

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if line := await reader.readline():
                writer.write(msgspec.json.encode(await _respond(line, answer)) + b"\n")
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    try:
        server = await asyncio.start_unix_server(serve, folder / "socket", limit=_LINE_MAX_BYTES)
        place.write_text(str(folder / "socket"), encoding="utf-8")
        async with server:
            yield
    finally:
        place.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


async def _respond(line: bytes, answer: Answer) -> ControlResponse:
    try:
        content: ControlRequest = msgspec.json.decode(line, type=ControlRequest)
        return ControlResponse(result=await answer(content))
    except BillfoldError as error:
        return ControlResponse(code=error.code, detail=error.detail)
    except Exception as error:  # noqa: BLE001 - the other process has to say something
        log.warning("control_request_failed", error=error_summary(error))
        return ControlResponse(code="unavailable", detail="The sandbox could not do it. See its output.")
