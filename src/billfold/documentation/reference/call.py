"""One call of an operation: what a sample sends, whatever its language."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from uuid import UUID

from billfold.documentation.reference.fields import Node
from billfold.documentation.reference.operations import ApiOperation

FILE, FILE_TYPE = "document.pdf", "application/pdf"
_DAY = "2025-06-02"
_VALUES = {"document_type": "WIRE_COUNTERPARTY_VERIFICATION", "notification_type": "PAYMENT_RECEIVED"}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call: the values in its path, its body, and its query as text."""

    operation: ApiOperation
    variables: Mapping[str, str]
    body: Any
    query: str = ""

    @property
    def is_stream(self) -> bool:
        """Whether the response has no end."""
        return "text/event-stream" in self.operation.answers

    @property
    def is_redirect(self) -> bool:
        """Whether the response leads a browser on."""
        return "303" in self.operation.node["responses"]

    @property
    def answers_json(self) -> bool:
        """Whether the response is JSON."""
        return "application/json" in self.operation.answers


def call_of(operation: ApiOperation, variables: Mapping[str, str] | None = None, body: object = None) -> Call:
    """Return a call as the examples have it, with other values in the path or another body where they are given."""
    known = variables or {}
    required = [each for each in operation.parameters_in("query") if each.get("required")]
    return Call(
        operation=operation,
        variables={
            each["name"]: known.get(each["name"]) or _value_of(each["name"], each.get("schema", {}))
            for each in operation.parameters_in("path")
        },
        body=operation.request_example if body is None else body,
        query="&".join(f"{each['name']}={_value_of(each['name'], each.get('schema', {}))}" for each in required),
    )


def _value_of(name: str, schema: Node) -> str:
    """Return an example of a parameter: of an id always the same under one name."""
    if "enum" in schema:
        return str(schema["enum"][0])
    if schema.get("format") == "uuid":
        return str(UUID(bytes=blake2b(name.encode(), digest_size=16).digest(), version=4))
    return _VALUES.get(name, _DAY if schema.get("format") == "date" else name)
