"""The envelope of every event in deliveries, lists and streams."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

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
