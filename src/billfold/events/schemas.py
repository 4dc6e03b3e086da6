"""Events, their kinds and their attempts, as the API returns them."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec

from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.ledger.types import EventKind
from billfold.platform.errors import FieldError, InvalidInput

API_VERSION = "v1"


def _object_field(kind: EventKind[Any]) -> str | None:
    names = kind.payload.__struct_fields__
    return "ach_id" if "ach_id" in names else next((each for each in names if each.endswith("_id")), None)


OBJECT_FIELDS: Final = {name: field for name, kind in KINDS.items() if (field := _object_field(kind))}
"""The field of a payload with the id of the object that the event is about, by kind: its first, or the ACH entry."""


@cache
def payload_schema(kind: EventKind[Any]) -> dict[str, Any]:
    """Return the JSON Schema of the payload of a kind. Fields may be added to it, none removed."""
    _, parts = msgspec.json.schema_components((kind.payload,))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **parts[kind.payload.__name__]}


def example_payload(kind: EventKind[Any]) -> dict[str, Any]:
    """Return an example of the payload of a kind, as it is sent."""
    example: dict[str, Any] = msgspec.to_builtins(kind.example)
    return example


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event. `event_id` is the same wherever and however often it is received.

    `sequence` counts the events that this reader's API can see, without a gap; `previous_sequence` is that of
    the event before it. Both are null for an event that never happened (a simulated one).
    """

    event_id: UUID
    event_type: str
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    sequence: int | None
    previous_sequence: int | None
    api_version: str
    resource_version: int | None
    """Of two events about one resource, the one with the higher version is later."""
    object_id: Annotated[
        UUID | None, msgspec.Meta(description="What the event is about; its id is in the payload, too.")
    ] = None
    external_id: Annotated[str | None, msgspec.Meta(description="Your own id of the object, if it has one.")] = None
    metadata: Annotated[
        dict[str, str], msgspec.Meta(description="Your metadata of the object, as they are when the event is sent.")
    ] = {}
    customer_id: UUID | msgspec.UnsetType = msgspec.UNSET
    payload: Any


class Subscriber(msgspec.Struct, frozen=True):
    """A reader of events: a customer, or its partner if there is no `customer_id`."""

    partner_id: UUID
    customer_id: UUID | None = None

    @property
    def level(self) -> Literal["partner", "customer"]:
        """Return which of the two event sequences it reads; columns begin with this word."""
        return "partner" if self.customer_id is None else "customer"

    @property
    def key(self) -> UUID:
        """Return the id that its sequence belongs to."""
        return self.customer_id or self.partner_id

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the event types it can see."""
        return PARTNER_KINDS if self.customer_id is None else CUSTOMER_KINDS

    @property
    def name(self) -> str:
        """Return the scope of the cursors of its lists."""
        return f"{self.partner_id}:{self.customer_id}"


def require_kinds(subscriber: Subscriber, kinds: Iterable[str] | None, *loc: str | int) -> None:
    """Raise InvalidInput unless the subscriber can see all these event types."""
    if not set(kinds or ()) <= set(subscriber.kinds):
        raise InvalidInput([unknown_event_type_error(*loc)])


def unknown_event_type_error(*loc: str | int) -> FieldError:
    """Return the error for an event type that does not exist in this API."""
    return FieldError(loc, "is not a type listed by /api/v1/events/types/", "enum")


class DeliveryAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a subscription's url. `response_code` is 0 when there was no answer."""

    delivery_attempt_id: UUID
    subscription_id: UUID
    event_id: UUID
    success: bool
    response_code: int
    response_message: str
    called_at: datetime
    duration_ms: int
    object_type: Literal["DeliveryAttempt"] = "DeliveryAttempt"


class EventType(msgspec.Struct, kw_only=True):
    """A kind of event: when it is raised, and the format of its payload."""

    event: str
    description: str
    version: int
    """Increases by one when fields are added to the payload."""
    schema: Annotated[dict[str, Any], msgspec.Meta(description="JSON Schema of the payload.")]
    example: Annotated[dict[str, Any], msgspec.Meta(description="An example of the payload.")]
    object_type: Literal["EventType"] = "EventType"


class Event(msgspec.Struct, kw_only=True):
    """An event and its delivery attempts."""

    event: Envelope
    delivery_attempts: list[DeliveryAttempt]
    object_type: Literal["Event"] = "Event"


class Redelivery(msgspec.Struct, kw_only=True):
    """The number of events queued for delivery by the request."""

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
