"""Events, their kinds and their attempts, as they are answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from billfold.events.kinds import (example_payload, payload_schema)
from billfold.ledger.event_kind import (EventKind)
from billfold.events.types import Envelope
from billfold.events.types import (DeliveryAttempt)


class EventType(msgspec.Struct, kw_only=True):
    """A kind of event: when it is raised and what its payload looks like."""

    event: str
    description: str
    version: int
    """Goes up by one when fields are added to the payload."""
    schema: Annotated[dict[str, Any], msgspec.Meta(description="JSON Schema of the payload.")]
    example: Annotated[dict[str, Any], msgspec.Meta(description="An example of the payload.")]
    object_type: Literal["EventType"] = "EventType"


class Event(msgspec.Struct, kw_only=True):
    """An event and what was attempted to deliver it."""

    event: Envelope
    delivery_attempts: list[DeliveryAttempt]
    object_type: Literal["Event"] = "Event"


class StreamMessage(msgspec.Struct, frozen=True):
    """A message of the stream of events. `event` is empty for an event, else its name.

    `data` is JSON as it came, `sequence` where to go on from.
    """

    event: str
    data: bytes
    sequence: int | None


class Redelivery(msgspec.Struct, kw_only=True):
    """How many events wait to be delivered because of the request."""

    count: int
    object_type: Literal["Redelivery"] = "Redelivery"


def render_type(kind: EventKind[Any]) -> EventType:
    """Return a kind of event."""
    return EventType(
        event=kind.name,
        description=kind.meaning,
        version=kind.version,
        schema=payload_schema(kind),
        example=example_payload(kind),
    )
