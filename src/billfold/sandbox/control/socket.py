"""The socket between the servers of a sandbox and the process that started them: a request and a response per line.

The requests are tasks that concern the whole bank, and its forks. Tasks and forks are returned as they are stored.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
import structlog

from billfold.http.schemas import one_of
from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import BillfoldError, Refused, Unavailable

log = structlog.get_logger(__name__)

Result = TypeVar("Result")
_PLACE = "control"
"""The file with the path of the socket, because a path in a state directory may be too long for one."""
_LINE_MAX_BYTES = 1 << 20
_TIMEOUT_SECONDS = 30.0
_NOT_RUNNING = "Forks and scenarios need `billfold sandbox`, and its bank to be open."


class TaskKind(StrEnum):
    """The action of a task."""

    FORK = "FORK"
    REWIND = "REWIND"
    RESET = "RESET"
    PLAY = "PLAY"


class TaskStatus(StrEnum):
    """The status of a task."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class SandboxTaskStep(msgspec.Struct, kw_only=True):
    """A step of a task, and its result."""

    title: str
    status: Annotated[str, one_of(*TaskStatus)]
    detail: str | None


class SandboxTask(msgspec.Struct, kw_only=True):
    """A task that concerns the whole bank. `name` is that of the fork or scenario; `detail` explains a failure."""

    id: UUID
    kind: Annotated[str, one_of(*TaskKind)]
    name: str
    status: Annotated[str, one_of(*TaskStatus)]
    detail: str | None
    steps: list[SandboxTaskStep]
    started_at: str
    ended_at: str | None
    object_type: Literal["SandboxTask"] = "SandboxTask"


class StartTask(msgspec.Struct, frozen=True, tag=True):
    """Start a task; a known task with this id is returned."""

    id: UUID
    kind: TaskKind
    name: str


class ListTasks(msgspec.Struct, frozen=True, tag=True):
    """List the newest tasks."""


class ListForks(msgspec.Struct, frozen=True, tag=True):
    """List the forks."""


class DropFork(msgspec.Struct, frozen=True, tag=True):
    """Remove a fork."""

    name: str


ControlRequest = StartTask | ListTasks | ListForks | DropFork


class ControlResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a request, or the problem for which it was refused."""

    result: Any = None
    code: str | None = None
    detail: str = ""


class SandboxControl:
    """Requests of one process to the process that started the sandbox of a state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._place = state_dir / _PLACE

    async def request(self, content: ControlRequest, returns: type[Result]) -> Result:
        """Return the result of a request. Raises BillfoldError like the other process, and Unavailable."""
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
async def control_socket(state_dir: Path, answer: Callable[[ControlRequest], Awaitable[object]]) -> AsyncIterator[None]:
    """Answer requests for the duration of the block."""
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


async def _respond(line: bytes, answer: Callable[[ControlRequest], Awaitable[object]]) -> ControlResponse:
    try:
        content: ControlRequest = msgspec.json.decode(line, type=ControlRequest)
        return ControlResponse(result=await answer(content))
    except BillfoldError as error:
        return ControlResponse(code=error.code, detail=error.detail)
    except Exception as error:  # noqa: BLE001 - the other process has to say something
        log.warning("control_request_failed", error=error_summary(error))
        return ControlResponse(code="unavailable", detail="The sandbox failed. See its output.")
