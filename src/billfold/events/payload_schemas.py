"""JSON Schemas of payloads, made from the types that flows raise events with."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from billfold.events.kinds import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def payload_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of the payload of a kind. Fields may be added to it, none taken."""
    payload = KINDS[kind].payload
    _, parts = msgspec.json.schema_components((payload,))
    return {"$schema": DIALECT, **parts[payload.__name__]}


def example_payload(kind: str) -> dict[str, Any]:
    """Return an example of the payload of a kind, as it is sent."""
    told: dict[str, Any] = msgspec.to_builtins(KINDS[kind].example)
    return told
