"""A proxy in front of a worker of a cluster, which sees the phases of commits and tells them as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import cast

from typing_extensions import override


class Moment(StrEnum):
    """A moment of a commit, as a worker sees it."""

    BEFORE_PREPARE = "before PREPARE"
    PREPARED = "prepared, not told"
    DECIDED = "before COMMIT PREPARED"
    COMMITTED = "committed, not told"


_ASKED = {b"PREPARE TRANSACTION": Moment.BEFORE_PREPARE, b"COMMIT PREPARED": Moment.DECIDED}
_TOLD = {b"PREPARE TRANSACTION\0": Moment.PREPARED, b"COMMIT PREPARED\0": Moment.COMMITTED}
Seen = Callable[[Moment], None]


class _Side(asyncio.Protocol):
    """One end of a connection, which passes on to the other."""

    other: _Side
    transport: asyncio.Transport

    def __init__(self, moments: Mapping[bytes, Moment], seen: Seen) -> None:
        self._moments, self._seen = moments, seen

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        for words, moment in self._moments.items():
            if words in data:
                self._seen(moment)
        if not self.other.transport.is_closing():
            self.other.transport.write(data)

    @override
    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    @override
    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if hasattr(self, "other"):
            self.other.transport.close()


class _Front(_Side):
    """The end of who connects."""

    def __init__(self, to: int, seen: Seen) -> None:
        super().__init__(_ASKED, seen)
        self._to = to

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._early = b""
        self._connecting = asyncio.create_task(self._connect())

    @override
    def data_received(self, data: bytes) -> None:
        if hasattr(self, "other"):
            super().data_received(data)
        else:
            self._early += data

    async def _connect(self) -> None:
        back = _Side(_TOLD, self._seen)
        back.other = self
        try:
            await asyncio.get_running_loop().create_connection(lambda: back, "127.0.0.1", self._to)
        except OSError:
            self.transport.close()
            return
        self.other = back
        back.transport.write(self._early)


async def listen(port: int, to: int, seen: Seen) -> None:
    """Pass on what comes to a port; `seen` is called before a message of a moment is passed on."""
    await asyncio.get_running_loop().create_server(lambda: _Front(to, seen), "127.0.0.1", port)
