"""A page for each type of event, with an example as it is delivered, and the table of all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from billfold.documentation.types import Page, Sample, Samples
from billfold.events.kinds import (payload_schema)
from billfold.ledger.event_kind import (EventKind)
from billfold.events.webhook_openapi import example_delivery

INDEX_PATH = "/docs/events"
_INDEX = """\
# Events

Every type of event, who can subscribe to it, and when it is raised.
[Webhooks and the event stream](/docs/guides/webhooks) explains how to receive them; `GET /api/v1/events/types/`
serves the JSON Schema of each payload.

| Type | For | Raised when |
|---|---|---|
"""


def event_index(kinds: Iterable[EventKind[Any]]) -> Page:
    """Return the page that lists all types of events."""
    rows = "".join(
        f"| [`{each.name}`]({INDEX_PATH}/{each.name}) | {' and '.join(_readers(each))} | {each.meaning} |\n"
        for each in kinds
    )
    return Page(path=INDEX_PATH, title="Events", text=lambda: _INDEX + rows)


def event_pages(kinds: Iterable[EventKind[Any]]) -> list[Page]:
    """Return a page for each type of event."""
    return [
        Page(
            path=f"{INDEX_PATH}/{each.name}",
            title=each.name,
            text=partial(_event_text, each),
            samples=partial(_examples, each),
        )
        for each in kinds
    ]


def _readers(kind: EventKind[Any]) -> list[str]:
    return [name for name, sees in (("partners", kind.partner), ("customers", kind.customer)) if sees]


def _event_text(kind: EventKind[Any]) -> str:
    schema = payload_schema(kind)
    fields = "".join(
        f"| `{name}` | {_type_of(field)} | {'yes' if name in schema['required'] else 'no'} |\n"
        for name, field in schema["properties"].items()
    )
    return (
        f"# {kind.name}\n\n{kind.meaning}\n\n"
        f"For {' and '.join(_readers(kind))}. Version {kind.version} of its payload. [Webhooks and the event stream]"
        "(/docs/guides/webhooks) explains the fields of the envelope and the signature of a delivery.\n\n"
        f"## Payload\n\n| Field | Type | Always there |\n|---|---|---|\n{fields}\n"
    )


def _type_of(schema: dict[str, Any]) -> str:
    choices = schema.get("anyOf", [schema])
    names = [" ".join(filter(None, (each.get("type", ""), each.get("format", "")))) for each in choices]
    return " or ".join(names)


def _examples(kind: EventKind[Any]) -> list[Samples]:
    return [
        Samples("Example", [Sample(reader, "json", _delivery(kind, customer=customer))])
        for reader, sees, customer in (
            ("As a partner receives it", kind.partner, False),
            ("As a customer receives it", kind.customer, True),
        )
        if sees
    ]


def _delivery(kind: EventKind[Any], *, customer: bool) -> str:
    return json.dumps(example_delivery(kind, customer=customer), indent=2)
