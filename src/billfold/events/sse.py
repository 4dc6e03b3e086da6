"""Server-sent events: the events of a reader as they happen, while their token is valid.

Each message is an envelope; its id is the sequence to resume from. A `heartbeat` comes at least
every 15 seconds with the sequence up to which all events were sent. `end` gives the reason why nothing follows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec

from billfold.events.broadcaster import EventBroadcaster
from billfold.events.schemas import Subscriber, require_kinds
from billfold.events.store import LoggedEvent, envelope_of
from billfold.http.operations import Options
from billfold.http.parameters import Query
from billfold.http.raw_request import RawRequest
from billfold.http.responses import StreamedResponse
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.shortage import is_shortage
from billfold.platform.errors import InvalidInput

HEARTBEAT_SECONDS = 15.0
TOKEN_SECONDS = 0.5
"""Maximum time that a stream continues after its token or its authorization has ended."""
RETRY_MILLISECONDS = 2_000
SEQUENCE_DIGITS_MAX = 18
MEDIA_TYPE = "text/event-stream"

TokenExpiry = Callable[[], Awaitable[datetime | None]]
"""Returns the time at which the authorization of the caller's token ends; None if it has ended."""

_json = msgspec.json.Encoder().encode
STREAM_OPTIONS: Options = {
    "tag": "events",
    "refuses": ("too-many-streams",),
    "documented": {
        "parameters": [
            {
                "name": "Last-Event-ID",
                "in": "header",
                "schema": {"type": "string"},
                "description": "As `after_sequence`.",
                "required": False,
                "deprecated": False,
            }
        ],
        "responses": {
            "200": {
                "description": "Messages (https://html.spec.whatwg.org/multipage/"
                "server-sent-events.html) whose data is the JSON of an event and whose id is its "
                "sequence. There are also `heartbeat` and `end`.",
                "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
            }
        },
    },
}
"""Options of an operation that streams."""


def _sequence(source: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= SEQUENCE_DIGITS_MAX):
        raise InvalidInput.at(source, name, msg="must be a sequence: a whole number from 0")
    return int(text)


class StreamQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The position to start from, the event types, and whether to wait for more."""

    after: Annotated[
        int | None,
        Query(
            name="after_sequence",
            parse=partial(_sequence, "query"),
            schema={"type": "string"},
            description="Send what came after this sequence first; 0 is everything.",
        ),
    ] = None
    kinds: Annotated[list[str] | None, Query(name="event_type[]", description="Only these kinds.")] = None
    object_id: Annotated[UUID | None, Query(description="Only those about this object.")] = None
    follow: Annotated[
        bool, Query(schema={"type": "string"}, description="false ends when everything so far is sent.")
    ] = True

    def resumed(self, request: RawRequest) -> StreamQuery:
        """Return the query with the sequence of the header `Last-Event-ID`, which takes precedence."""
        sent = request.header(b"last-event-id")
        if sent is None:
            return self
        return msgspec.structs.replace(self, after=_sequence("header", "last-event-id", sent))


async def event_stream(
    broadcaster: EventBroadcaster, subscriber: Subscriber, query: StreamQuery, find_expiry: TokenExpiry
) -> StreamedResponse:
    """Return the stream of a subscriber's events. Raises `too-many-streams`, InvalidInput."""
    require_kinds(subscriber, query.kinds, "query", "event_type[]")
    broadcaster.check_capacity(subscriber)
    newest = await broadcaster.position(subscriber)
    after = newest if query.after is None else min(query.after, newest)
    messages = _messages(broadcaster, subscriber, query, find_expiry=find_expiry, after=after)
    return StreamedResponse(MEDIA_TYPE, messages, [(b"x-accel-buffering", b"no")])


async def _messages(
    broadcaster: EventBroadcaster, subscriber: Subscriber, query: StreamQuery, find_expiry: TokenExpiry, after: int
) -> AsyncIterator[bytes]:
    writer = _MessageWriter(subscriber, query, after)
    monitor = _TokenMonitor(find_expiry)
    await monitor.refresh_expiry()
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    if not query.follow:
        yield writer.heartbeat()
        async for event in broadcaster.events_until_now(subscriber, after):
            yield writer.message(event)
        yield writer.end("caught-up")
        return
    beat_at = monotonic()
    async for each in broadcaster.follow(subscriber, after, monitor.seconds_left):
        if monitor.is_due():
            await monitor.refresh_expiry()
        if monitor.seconds_left() < 0:
            break
        if each is not None:
            yield writer.message(each)
        if monotonic() >= beat_at:
            yield writer.heartbeat()
            beat_at = monotonic() + HEARTBEAT_SECONDS
    yield writer.end("token-expired" if monitor.seconds_left() < 0 else "server-stopping")


class _MessageWriter:
    """Writes messages and the sequences they refer to."""

    def __init__(self, subscriber: Subscriber, query: StreamQuery, after: int) -> None:
        self._subscriber = subscriber
        self._query = query
        self._previous = self._last_sequence = after

    def message(self, event: LoggedEvent) -> bytes:
        """Return the message of an event; nothing for a type or an object that was not requested."""
        self._last_sequence = event.sequence or self._last_sequence
        kinds, object_id = self._query.kinds, self._query.object_id
        if (kinds is not None and event.kind not in kinds) or (object_id is not None and object_id != event.object_id):
            return b""
        if event.sequence is None:
            return b"data: " + _json(envelope_of(event, self._subscriber.customer_id)) + b"\n\n"
        body = _json(envelope_of(event, self._subscriber.customer_id, self._previous))
        self._previous = event.sequence
        return b"id: %d\ndata: %b\n\n" % (event.sequence, body)

    def heartbeat(self) -> bytes:
        """Return the message that nothing is missing up to here."""
        writer: dict[str, Any] = {"sequence": self._last_sequence, "time": wall_now()}
        return b"event: heartbeat\ndata: " + _json(writer) + b"\n\n"

    def end(self, reason: str) -> bytes:
        """Return the last message."""
        return b"event: end\ndata: " + _json({"reason": reason, "sequence": self._last_sequence}) + b"\n\n"


class _TokenMonitor:
    """Checks a token repeatedly: it may be revoked while its stream is open."""

    def __init__(self, find_expiry: TokenExpiry) -> None:
        self._find_expiry = find_expiry
        self._ends_at: datetime | None = None
        self._checked_at = 0.0

    async def refresh_expiry(self) -> None:
        """Look the token up again; it may have been revoked."""
        try:
            self._ends_at = await self._find_expiry()
        except Exception as error:
            if not is_shortage(error):
                raise  # there are no events without a database
        self._checked_at = monotonic()

    def is_due(self) -> bool:
        """Return whether it is time to check again."""
        return monotonic() - self._checked_at >= TOKEN_SECONDS

    def seconds_left(self) -> float:
        """Return how many seconds to wait for an event; below zero if the token ended."""
        if self._ends_at is None:
            return -1.0
        return min(TOKEN_SECONDS, (self._ends_at - wall_now()).total_seconds())
