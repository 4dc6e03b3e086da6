"""A proxy in front of a worker of a cluster, which sees the phases of commits and tells them as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum

_BYTES = 65_536


class Moment(StrEnum):
    """A moment of a commit, as a worker sees it."""

    BEFORE_PREPARE = "before PREPARE"
    PREPARED = "prepared, not told"
    DECIDED = "before COMMIT PREPARED"
    COMMITTED = "committed, not told"
    ONE_PHASE = "committed in one phase, not told"


_ASKED = {b"PREPARE TRANSACTION": Moment.BEFORE_PREPARE, b"COMMIT PREPARED": Moment.DECIDED}
_TOLD = {
    b"PREPARE TRANSACTION\0": Moment.PREPARED,
    b"COMMIT PREPARED\0": Moment.COMMITTED,
    b"COMMIT\0": Moment.ONE_PHASE,
}


class Proxy:
    """Passes on what comes to its port; `seen` is called before a message of a moment goes on."""

    def __init__(self, to: int, seen: Callable[[Moment], None]) -> None:
        self._to, self._seen = to, seen
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, port: int) -> None:
        """Listen at a port."""
        await asyncio.start_server(self._serve, "127.0.0.1", port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, to = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        for source, sink, moments in ((reader, to, _ASKED), (there, writer, _TOLD)):
            task = asyncio.create_task(self._pass(source, sink, moments))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, moments: dict[bytes, Moment]
    ) -> None:
        try:
            while data := await source.read(_BYTES):
                for words, moment in moments.items():
                    if words in data:
                        self._seen(moment)
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        sink.close()
