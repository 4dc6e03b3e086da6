"""Who reads events, and which event types they see."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from billfold.events.kinds import CUSTOMER_KINDS, PARTNER_KINDS
from billfold.platform.errors import FieldError


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
