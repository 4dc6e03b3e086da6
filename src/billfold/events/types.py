"""Who reads events, which event types they see, and the envelope in which they are sent."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.events.kinds import CUSTOMER_KINDS, PARTNER_KINDS
from billfold.platform.errors import FieldError

API_VERSION = "v1"


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event, once. `event_id` is the same wherever and however often it is received.

    `sequence` counts what this reader's API can see, without a gap; `previous_sequence` is that of
    the event before it. Both are null for an event that never happened (a simulated one).
    """

    event_id: UUID
    event_type: str
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    sequence: int | None
    previous_sequence: int | None
    api_version: str
    resource_version: int | None
    """Of two events about one resource, the one with the higher number is later."""
    customer_id: UUID | msgspec.UnsetType = msgspec.UNSET
    payload: Any


class Subscriber(msgspec.Struct, frozen=True):
    """A reader of events: a customer, or its partner when there is no `customer_id`."""

    partner_id: UUID
    customer_id: UUID | None = None

    @property
    def level(self) -> Literal["partner", "customer"]:
        """Return which of the two numbered event sequences it reads; columns begin with this word."""
        return "partner" if self.customer_id is None else "customer"

    @property
    def key(self) -> UUID:
        """Return the id under which its sequence is counted."""
        return self.customer_id or self.partner_id

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the event types it can see."""
        return PARTNER_KINDS if self.customer_id is None else CUSTOMER_KINDS

    @property
    def name(self) -> str:
        """Return the scope of the cursors of its lists."""
        return f"{self.partner_id}:{self.customer_id}"


def unknown_event_type_error(*loc: str | int) -> FieldError:
    """Return the mistake of naming an event type that does not exist in this API."""
    return FieldError(loc, "is not a kind of /api/v1/events/types/", "enum")


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
