"""Receivers of webhooks to measure with: they answer at once, after a while, or never."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any, cast

from typing_extensions import override

from benchmarks.worker_processes import Worker

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_SLOW = re.compile(r"/after/(\d+)/")
HANGING = "/never/"


class WebhookReceivers:
    """Every path is a receiver: `/after/20/x` answers after 20 ms, `/never/x` does not."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._called: Counter[str] = Counter()

    async def prepare(self, task: str) -> Any:
        """Open a port and return it, or return how often each path was called."""
        if task == "count":
            return dict(self._called)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _ReceiverProtocol(self._called), "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def run(self) -> None:
        """Nothing is timed."""

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()


class _ReceiverProtocol(asyncio.Protocol):
    """One connection: requests one after the other, each answered as its path says."""

    def __init__(self, called: Counter[str]) -> None:
        self._called = called
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            found = _LENGTH.search(head)
            whole = end + 4 + (int(found[1]) if found else 0)
            if len(self._buffer) < whole:
                return
            self._buffer = self._buffer[whole:]
            self._answer(head.split(b" ", 2)[1].decode())

    def _answer(self, path: str) -> None:
        self._called[path] += 1
        assert self._transport is not None
        if path.startswith(HANGING):
            return
        slow = _SLOW.match(path)
        if slow is None:
            self._transport.write(_ANSWER)
            return
        loop = asyncio.get_running_loop()
        loop.call_later(int(slow[1]) / 1_000, self._transport.write, _ANSWER)


async def open_receivers() -> WebhookReceivers:
    """Return receivers that have no port yet."""
    return WebhookReceivers()


def receivers_process() -> Worker:
    """Return them in a process of its own."""
    return Worker(open_receivers, fast=True)
