"""Events as they happen: a stream that continues where it was cut."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import httpx
import msgspec

from billfold.client.responses import ApiError
from billfold.events.schemas import StreamMessage

PATH = "/api/v1/events/stream/"
READ_TIMEOUT_SECONDS = 45.0
"""Three heartbeats: a line on which nothing comes for so long is dead."""
RECONNECT_DELAY_SECONDS = (1.0, 30.0)
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class EventStream:
    """Iterate over it: events, heartbeats and ends, one after the other, until you stop.

    A line that breaks or falls silent is opened again after the last sequence, the longer later
    the more often that fails. Raises ApiError for what will not get better.
    """

    def __init__(self, http: httpx.Client, *, after: int | None = None, kinds: Sequence[str] = ()) -> None:
        self._http = http
        self._kinds = list(kinds)
        self.sequence = after
        """The last sequence received; None before the first message."""

    def __iter__(self) -> Iterator[StreamMessage]:
        """Follow the stream for ever."""
        delay_min, delay_max = RECONNECT_DELAY_SECONDS
        delay = delay_min
        while True:
            with suppress(httpx.TransportError):
                for message in self._read_connection():
                    delay = delay_min
                    yield message
            time.sleep(delay)
            delay = min(delay_max, delay * 2)

    def _read_connection(self) -> Iterator[StreamMessage]:
        query = {"event_type[]": self._kinds}
        headers = {} if self.sequence is None else {"last-event-id": str(self.sequence)}
        timeout = httpx.Timeout(10.0, read=READ_TIMEOUT_SECONDS)
        with self._http.stream("GET", PATH, params=query, headers=headers, timeout=timeout) as response:
            if response.is_error:
                response.read()
                if response.status_code not in _TRANSIENT:
                    raise ApiError(response)
                return
            for message in messages_of(response.iter_lines()):
                if message.sequence is not None:
                    self.sequence = message.sequence
                yield message


def messages_of(lines: Iterator[str]) -> Iterator[StreamMessage]:
    """Read server-sent events from lines."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            yield _message(fields)
        fields = {}


def _message(fields: dict[str, str]) -> StreamMessage:
    event, data = fields.get("event", ""), fields["data"].encode()
    if event:
        position: dict[str, object] = msgspec.json.decode(data)
        last_sequence = position.get("sequence")
        return StreamMessage(event, data, last_sequence if isinstance(last_sequence, int) else None)
    return StreamMessage(event, data, int(fields["id"]) if "id" in fields else None)
