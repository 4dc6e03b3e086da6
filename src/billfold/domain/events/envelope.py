"""An event as it is told: one JSON text, the same in a webhook, a list and a stream."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from billfold.kit.dates import iso_z


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every event says, and its payload. Only customers are told `customer_id`."""

    event_id: UUID
    event_type: str
    timestamp: str
    sequence: int | None
    previous_sequence: int | None
    customer_id: UUID | None = None
    payload: msgspec.Raw


def encode_envelope(
    *,
    event_id: UUID,
    kind: str,
    raised_at: datetime,
    payload_json: str | bytes,
    sequence: int | None,
    previous_sequence: int | None,
    customer_id: UUID | None,
) -> bytes:
    """Return an event as JSON; the same event gives the same bytes."""
    return msgspec.json.encode(
        Envelope(
            event_id=event_id,
            event_type=kind,
            timestamp=iso_z(raised_at),
            sequence=sequence,
            previous_sequence=previous_sequence,
            customer_id=customer_id,
            payload=msgspec.Raw(
                payload_json.encode() if isinstance(payload_json, str) else payload_json
            ),
        )
    )
