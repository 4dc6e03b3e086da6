"""The port of plain http: every request is answered with `https-required`.

Nothing that was sent is read, so nothing can be done with it; there is no redirect, since a
client that follows one would send its secrets in the clear again the next time.
"""

import asyncio

import msgspec

from billfold.platform import ids
from billfold.platform.problems import PROBLEMS

LINGER_SECONDS = 2.0
"""How long the other side may continue sending before the connection is cut."""
CONNECTIONS_MAX = 200
"""How many are answered at a time; the process that listens also supervises others, which takes descriptors."""
_STEP = 64 * 1024


async def serve_plain(host: str, port: int, *, https_host: str) -> asyncio.Server:
    """Return a running server. `https_host` (with its port) is where the problem's page is."""
    is_free = asyncio.BoundedSemaphore(CONNECTIONS_MAX)

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if is_free.locked():
            writer.transport.abort()
            return
        async with is_free:
            await answer(reader, writer)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(_answer(https_host))
            writer.write_eof()
            await asyncio.wait_for(_let_finish(reader), LINGER_SECONDS)
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(refuse, host, port, limit=_STEP)


async def _let_finish(reader: asyncio.StreamReader) -> None:
    """Drop what arrives. Closing while it does would take the answer from the client."""
    while await reader.read(_STEP):
        pass


def _answer(https_host: str) -> bytes:
    problem = PROBLEMS["https-required"]
    trace_id = ids.new().hex
    body = msgspec.json.encode(
        {
            "type": f"https://{https_host}/docs/errors/{problem.code}",
            "title": problem.title,
            "status": problem.status,
            "detail": "Only https is accepted. Nothing of this request was read.",
            "code": problem.code,
            "trace_id": trace_id,
            "retryable": problem.retryable,
        }
    )
    head = (
        f"HTTP/1.1 {problem.status} Forbidden\r\n"
        "content-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\n"
        f"x-service-trace-id: {trace_id}\r\n"
        "x-content-type-options: nosniff\r\n"
        "referrer-policy: no-referrer\r\n"
        "cache-control: no-store\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body
