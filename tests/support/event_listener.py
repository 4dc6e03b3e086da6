"""A listener to a stream of events: an ASGI client that reads while the answer is still coming."""

import asyncio
import json

PATIENCE_SECONDS = 10


class Listener:
    """One open stream. `headers` prove the request; leaving it hangs up."""

    def __init__(self, sample_app, host, headers, query=""):
        self._app = sample_app
        self._hung_up = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._sent = False
        self._text = ""
        self.status = 0
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "https",
            "path": "/api/v1/events/stream/",
            "raw_path": b"/api/v1/events/stream/",
            "query_string": query.encode(),
            "root_path": "",
            "client": ("127.0.0.1", 1),
            "server": (host, 443),
            "state": {},
            "headers": [(b"host", host.encode())]
            + [(name.encode(), value.encode()) for name, value in headers.items()],
        }

    async def __aenter__(self):
        self._task = asyncio.create_task(self._app(self.scope, self._receive, self._send))
        return self

    async def __aexit__(self, *_):
        self._hung_up.set()
        await asyncio.wait_for(self._task, PATIENCE_SECONDS)

    async def _receive(self):
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            await self._chunks.put(message.get("body", b""))
            if not message.get("more_body", False):
                await self._chunks.put(None)

    async def message(self):
        """Return the next message as (id, event, data); None at the end of the stream."""
        while "\n\n" not in self._text:
            chunk = await asyncio.wait_for(self._chunks.get(), PATIENCE_SECONDS)
            if chunk is None:
                return None
            self._text += chunk.decode()
        block, _, self._text = self._text.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "data" not in fields:
            return await self.message()
        return fields.get("id"), fields.get("event"), json.loads(fields["data"])

    async def event(self):
        """Return the next event, heartbeats passed over."""
        while True:
            told = await self.message()
            if told is None or told[1] != "heartbeat":
                return told
