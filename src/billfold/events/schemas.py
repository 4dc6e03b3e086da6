"""Events, their kinds, subscriptions and what was attempted, as they are answered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.events import payload_schemas
from billfold.events.envelope import Envelope
from billfold.events.kinds import EventKind
from billfold.events.store import LoggedEvent, envelope_of
from billfold.events.types import Subscriber
from billfold.events.webhooks.types import AttemptRow, SubscriptionRow


class EventType(msgspec.Struct, kw_only=True):
    """A kind of event: when it is raised and what its payload looks like."""

    event: str
    description: str
    version: int
    """Goes up by one when fields are added to the payload."""
    schema: Annotated[dict[str, Any], msgspec.Meta(description="JSON Schema of the payload.")]
    example: Annotated[dict[str, Any], msgspec.Meta(description="An example of the payload.")]
    object_type: Literal["EventType"] = "EventType"


class DeliveryAttempt(msgspec.Struct, kw_only=True):
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


class RetryPolicy(msgspec.Struct, kw_only=True):
    """When a delivery that failed is tried again."""

    retry_on_status_codes: list[int]
    backoff_coefficient: float
    maximum_attempts: int
    initial_interval_seconds: float
    maximum_interval_seconds: float


class Subscription(msgspec.Struct, kw_only=True):
    """Who receives which kinds of events. The shared secret is never shown."""

    id: UUID
    url: str
    description: str
    events: list[str]
    status: Literal["enabled", "disabled"]
    disabled_because: str | None
    retry_policy: RetryPolicy | None
    time_created: datetime
    updated_at: datetime
    warnings: list[str] | msgspec.UnsetType = msgspec.UNSET
    object_type: Literal["Subscription"] = "Subscription"


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
        schema=payload_schemas.payload_schema(kind.name),
        example=payload_schemas.example_payload(kind.name),
    )


def render_attempt(row: AttemptRow) -> DeliveryAttempt:
    """Return an attempt."""
    return DeliveryAttempt(
        delivery_attempt_id=row.attempt_id,
        subscription_id=row.subscription_id,
        event_id=row.event_id,
        success=row.success,
        response_code=row.response_code,
        response_message=row.response_message,
        called_at=row.called_at,
        duration_ms=row.duration_ms,
    )


def render_event(event: LoggedEvent, reader: Subscriber, attempts: Iterable[AttemptRow]) -> Event:
    """Return an event as its reader receives it, with its attempts."""
    return Event(event=envelope_of(event, reader), delivery_attempts=[render_attempt(each) for each in attempts])


def render_subscription(row: SubscriptionRow, warnings: list[str] | None = None) -> Subscription:
    """Return a subscription; `warnings` are about the request."""
    policy = row.retry_policy
    return Subscription(
        id=row.subscription_id,
        url=row.url,
        description=row.description,
        events=list(row.events),
        status=row.status,
        disabled_because=row.disabled_because,
        retry_policy=None if policy is None else msgspec.convert(msgspec.structs.asdict(policy), RetryPolicy),
        time_created=row.created_at,
        updated_at=row.updated_at,
        warnings=warnings or msgspec.UNSET,
    )
