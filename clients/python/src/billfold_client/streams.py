"""Streams of events, which go on where they were interrupted."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import msgspec

from billfold_client.errors import ApiError
from billfold_client.shapes import UNSET, Shape, Unset, decode

READ_TIMEOUT_SECONDS = 45.0
"""Three heartbeats: a connection that is silent for longer is considered dead."""
RECONNECT_DELAY_SECONDS = (1.0, 30.0)
_TIMEOUT = httpx.Timeout(10.0, read=READ_TIMEOUT_SECONDS)
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class Envelope(Shape, kw_only=True):
    """One event. `event_id` is the same wherever and however often it is received.

    `sequence` counts the events that this reader's API can see, without a gap; `previous_sequence` is that of
    the event before it. Both are None for an event that never happened (a simulated one).
    """

    event_id: UUID
    event_type: str
    timestamp: datetime
    sequence: int | None
    previous_sequence: int | None
    api_version: str
    resource_version: int | None
    """Of two events about one resource, the one with the higher version is later."""
    customer_id: UUID | Unset = UNSET
    payload: Any


class StreamMessage(msgspec.Struct, frozen=True):
    """A message of the stream of events. `event` is empty for an event, else its name: `heartbeat`, `end`.

    `data` is JSON as received, `sequence` is the one to continue from.
    """

    event: str
    data: bytes
    sequence: int | None

    @property
    def envelope(self) -> Envelope:
        """Return the event that the message is of."""
        envelope: Envelope = decode(self.data, Envelope)
        return envelope


class _Position:
    """The place up to which a stream was read, and the wait before it is opened again."""

    def __init__(self, path: str, query: Mapping[str, list[str]]) -> None:
        self.sequence: int | None = None
        """The last sequence received; None before the first message."""
        self._path, self._query = path, query
        self._is_finite = query.get("follow") == ["false"]
        self._delay_min, self._delay_max = RECONNECT_DELAY_SECONDS
        self._delay = self._delay_min

    def _request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        headers = {} if self.sequence is None else {"last-event-id": str(self.sequence)}
        return http.build_request("GET", self._path, params=self._query, headers=headers, timeout=_TIMEOUT)

    def _read(self, message: StreamMessage) -> StreamMessage:
        self._delay = self._delay_min
        if message.sequence is not None:
            self.sequence = message.sequence
        return message

    def _may_try_again(self, error: httpx.TransportError | ApiError) -> None:
        """Raise what is permanent."""
        if isinstance(error, ApiError) and error.status not in _TRANSIENT:
            raise error

    def _next_delay(self) -> float:
        delay, self._delay = self._delay, min(self._delay_max, self._delay * 2)
        return delay


class EventStream(_Position):
    """Iterate over it: events, heartbeats and ends, in order, until you stop.

    A connection that breaks or falls silent is reopened after the last sequence, with a delay
    that grows with each failure. Raises ApiError for an error that is permanent.
    """

    def __init__(self, http: httpx.Client, path: str, query: Mapping[str, list[str]]) -> None:
        super().__init__(path, query)
        self._http = http

    def __iter__(self) -> Iterator[StreamMessage]:
        """Follow the stream."""
        while True:
            try:
                for message in self._read_connection():
                    yield self._read(message)
                if self._is_finite:
                    return
            except (httpx.TransportError, ApiError) as error:
                self._may_try_again(error)
            time.sleep(self._next_delay())

    def _read_connection(self) -> Iterator[StreamMessage]:
        response = self._http.send(self._request(self._http), stream=True)
        try:
            if response.is_error:
                response.read()
                raise ApiError(response)
            lines = MessageLines()
            for line in response.iter_lines():
                yield from lines.feed(line)
        finally:
            response.close()


class AsyncEventStream(_Position):
    """The same for programs that await: `async for message in stream`."""

    def __init__(self, http: httpx.AsyncClient, path: str, query: Mapping[str, list[str]]) -> None:
        super().__init__(path, query)
        self._http = http

    async def __aiter__(self) -> AsyncIterator[StreamMessage]:
        """Follow the stream."""
        while True:
            try:
                async for message in self._read_connection():
                    yield self._read(message)
                if self._is_finite:
                    return
            except (httpx.TransportError, ApiError) as error:
                self._may_try_again(error)
            await asyncio.sleep(self._next_delay())

    async def _read_connection(self) -> AsyncIterator[StreamMessage]:
        response = await self._http.send(self._request(self._http), stream=True)
        try:
            if response.is_error:
                await response.aread()
                raise ApiError(response)
            lines = MessageLines()
            async for line in response.aiter_lines():
                for message in lines.feed(line):
                    yield message
        finally:
            await response.aclose()


class MessageLines:
    """Reads server-sent events from lines."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Iterator[StreamMessage]:
        """Yield the message that a line ends."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return
        fields, self._fields = self._fields, {}
        if "data" in fields:
            yield _message(fields)


def _message(fields: Mapping[str, str]) -> StreamMessage:
    event, data = fields.get("event", ""), fields["data"].encode()
    if event:
        position: dict[str, object] = msgspec.json.decode(data)
        last_sequence = position.get("sequence")
        return StreamMessage(event, data, last_sequence if isinstance(last_sequence, int) else None)
    return StreamMessage(event, data, int(fields["id"]) if "id" in fields else None)
