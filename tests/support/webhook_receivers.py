"""Receivers of webhooks on this machine: each answers as it was told to, and remembers."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
SECRET = "a secret of more than 24 characters"


def answer(status=200, *headers, body=b"", reason="OK"):
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status} {reason}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class LastWords(bytes):
    """An answer after which a receiver hangs up."""

    __slots__ = ()


@dataclass
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self):
        return json.loads(self.body)

    @property
    def id(self):
        return self.headers["webhook-id"]


Script = Callable[[Received], Awaitable[bytes | None]]
"""What a receiver answers to a request; None hangs up."""


@dataclass
class Receiver:
    """Serves on a port of its own; `script` yields the bytes to answer, or waits, or hangs up."""

    script: Script | None = None
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self.serve_one(reader, writer):
                    pass
        finally:
            writer.transport.abort()

    async def serve_one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        body = await reader.readexactly(int(headers["content-length"]))
        got = Received(head[0].split(" ")[1], headers, body)
        self.requests.append(got)
        self.arrived.set()
        said = answer() if self.script is None else await self.script(got)
        if said is None:
            return False
        writer.write(said)
        await writer.drain()
        if isinstance(said, LastWords):
            writer.write_eof()
            await reader.read()
            return False
        return True

    async def count(self, number, seconds=10):
        """Wait until so many requests have come."""
        async with asyncio.timeout(seconds):
            while len(self.requests) < number:
                self.arrived.clear()
                if len(self.requests) < number:
                    await self.arrived.wait()
        return self.requests


@asynccontextmanager
async def receiving(script=None, *, ssl=None):
    """A receiver that listens while the context lasts."""
    receiver = Receiver(script)
    tasks: set[asyncio.Task[None]] = set()

    def serve(reader, writer):
        tasks.add(asyncio.create_task(receiver.serve(reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ssl)
    port = server.sockets[0].getsockname()[1]
    receiver.url = f"{'http' if ssl is None else 'https'}://localhost:{port}/hook?a=1"
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def always(said):
    """A script that always answers the same."""

    async def script(_):
        return said

    return script
