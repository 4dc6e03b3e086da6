"""The `webhooks` section of an OpenAPI document: the deliveries to subscriptions, by kind."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.events.kinds import KINDS
from billfold.events.schemas import API_VERSION, OBJECT_FIELDS, Envelope, payload_schema
from billfold.ledger.types import EventKind

_EVENT = UUID("0d1c2b3a-4f5e-4697-8877-665544332211")
_CUSTOMER = UUID("7a6b5c4d-3e2f-4a1b-9c0d-8e7f6a5b4c3d")
# Kinds whose examples show a note.
_NOTED = ("card.", "counterparty.", "pocket.", "portal.", "transfers.")
_AT = datetime(2025, 6, 2, 13, 0, 1, tzinfo=UTC)
_HEADERS = (
    ("webhook-id", "The id of the event, the same at every attempt. De-duplicate by it."),
    ("webhook-timestamp", "When this attempt was made, in seconds since 1970."),
    (
        "webhook-signature",
        (
            "`v1,` and base64 of HMAC-SHA256, keyed with the shared secret, over id, timestamp and "
            "body with dots between them. Two, separated by a space, while a secret is being changed."
        ),
    ),
    ("x-service-subscription-id", "The subscription of the delivery. Not signed."),
    ("x-service-delivery-attempt-id", "The id of the delivery attempt. Not signed."),
)


def webhooks_of(kinds: Iterable[str], *, customer: bool) -> dict[str, Any]:
    """Return one webhook for each kind; those of the Customer API contain `customer_id`."""
    return {kind: {"post": _call(KINDS[kind], customer=customer)} for kind in kinds}


def _call(kind: EventKind[Any], *, customer: bool) -> dict[str, Any]:
    return {
        "operationId": f"on_{kind.name.replace('.', '_').replace('-', '_')}",
        "summary": kind.meaning.rstrip("."),
        "description": f"{kind.meaning} Answer with a 2xx within 10 seconds, and work afterwards.",
        "tags": ["webhooks"],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": meaning, "schema": {"type": "string"}}
            for name, meaning in _HEADERS
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": envelope_schema(kind, customer=customer),
                    "example": example_delivery(kind, customer=customer),
                }
            },
        },
        "responses": {
            "2XX": {"description": "The event was accepted."},
            "410": {"description": "The receiver wants no more events: the subscription is disabled."},
            "default": {"description": "The event is sent again according to the retry policy."},
        },
    }


def envelope_schema(kind: EventKind[Any], *, customer: bool) -> dict[str, Any]:
    """Return the JSON Schema of an event of a kind, its payload's included."""
    _, parts = msgspec.json.schema_components((Envelope,))
    whole = parts[Envelope.__name__]
    payload = {name: each for name, each in payload_schema(kind).items() if name != "$schema"}
    properties = {
        **_nullable(whole["properties"]),
        "event_type": {"type": "string", "const": kind.name},
        "payload": payload,
    }
    if not customer:
        del properties["customer_id"]
    required = [*whole["required"], *(["customer_id"] if customer else [])]
    return {**whole, "title": kind.name, "properties": properties, "required": required}


def _nullable(properties: dict[str, Any]) -> dict[str, Any]:
    """Return properties with a list of types where one alternative is null: generators read no other in webhooks."""
    return {
        name: each if "anyOf" not in each else {"type": [kind["type"] for kind in each["anyOf"]]}
        for name, each in properties.items()
    }


def example_delivery(kind: EventKind[Any], *, customer: bool) -> dict[str, Any]:
    """Return an event of a kind as it is delivered to a partner, or to a customer."""
    field = OBJECT_FIELDS.get(kind.name)
    envelope = Envelope(
        event_id=_EVENT,
        event_type=kind.name,
        timestamp=_AT,
        sequence=42,
        previous_sequence=41,
        api_version=API_VERSION,
        resource_version=43,
        object_id=None if field is None else getattr(kind.example, field),
        external_id="inv-1" if kind.name.startswith(_NOTED) else None,
        metadata={"team": "ops"} if kind.name.startswith(_NOTED) else {},
        customer_id=_CUSTOMER if customer else msgspec.UNSET,
        payload=kind.example,
    )
    example: dict[str, Any] = msgspec.to_builtins(envelope)
    return example
