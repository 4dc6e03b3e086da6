"""An operation as described by its OpenAPI document, its fields as lines of Markdown, and one call of it.

The pages and samples of the reference are built from it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

Node = Mapping[str, Any]
_DEPTH_MAX = 6
_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "like `{}`",
    "default": "by default `{}`",
}
_NO_LIMIT: tuple[Any, ...] = (None, "", [], {})


class Row(NamedTuple):
    """A parameter or field. Its texts are Markdown."""

    name: str
    kind: str
    text: str
    required: bool


def list_of(rows: Iterable[Row]) -> str:
    """Return parameters or fields as a list."""
    return "".join(
        f"* `{row.name}` {row.kind}{'' if row.required else ', optional'}{f'. {row.text}' if row.text else ''}\n"
        for row in rows
    )


def parameter_rows(document: Node, parameters: Iterable[Node]) -> list[Row]:
    """Return parameters of a path, a query or a header."""
    return [
        Row(
            each["name"],
            kind_of(document, each.get("schema", {})),
            each.get("description", ""),
            required=each.get("required", False),
        )
        for each in parameters
    ]


def rows_of(document: Node, schema: Node, prefix: str = "", depth: int = 0) -> Iterator[Row]:
    """Yield a row for each field of every variant; a field that not all variants have names those that do."""
    variants = _variants(document, schema)
    found: dict[Row, list[str]] = {}
    for name, variant in variants.items():
        for row in _fields(document, variant, prefix, depth=depth):
            found.setdefault(row, []).append(f"`{name}`")
    for row, names in found.items():
        everywhere = len(names) == len(variants)
        yield row if everywhere else row._replace(text=" ".join([f"With {', '.join(names)}.", row.text]).strip())


def _fields(document: Node, schema: Node, prefix: str, depth: int) -> Iterator[Row]:
    """Yield a row for each field of an object, those of nested objects after the outer field."""
    required = schema.get("required", [])
    for name, each in schema.get("properties", {}).items():
        text = resolved(document, each).get("description", "")
        yield Row(prefix + name, kind_of(document, each), text, required=name in required)
        inner, mark = _inside(document, each)
        if depth < _DEPTH_MAX:
            yield from rows_of(document, inner, f"{prefix}{name}{mark}.", depth=depth + 1)


def _inside(document: Node, schema: Node) -> tuple[Node, str]:
    schema = resolved(document, schema)
    if schema.get("type") == "array":
        return resolved(document, schema.get("items", {})), "[]"
    return schema, ""


def _variants(document: Node, schema: Node) -> dict[str, Node]:
    """Return the variants of a value, by the value of their discriminator field."""
    schema = resolved(document, schema)
    choices = schema.get("oneOf") or schema.get("anyOf") or [schema]
    objects = [each for each in (resolved(document, each) for each in choices) if each.get("properties")]
    told_by = schema.get("discriminator", {}).get("propertyName", "type")
    return {_variant_name(each, told_by) or str(place): each for place, each in enumerate(objects, start=1)}


def _variant_name(schema: Node, told_by: str) -> str:
    field = schema["properties"].get(told_by, {})
    names = [field["const"]] if "const" in field else field.get("enum", [])
    return " | ".join(names) or str(schema.get("title", ""))


def kind_of(document: Node, schema: Node) -> str:
    """Return a short description of a value's type."""
    schema = resolved(document, schema)
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " | ".join("null" if each is None else f"`{each}`" for each in schema["enum"])
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        return " or ".join(dict.fromkeys(kind_of(document, each) for each in choices))
    if schema.get("type") == "array":
        return f"list of {kind_of(document, schema.get('items', {}))}"
    kind = schema.get("type", "anything")
    text = " or ".join(kind) if isinstance(kind, list) else kind
    limits = [limit.format(schema[key]) for key, limit in _LIMITS.items() if schema.get(key) not in _NO_LIMIT]
    return ", ".join([f"{text} ({schema['format']})" if "format" in schema else text, *limits])


def resolved(document: Node, node: Node) -> Node:
    """Return the target of a reference within the document."""
    seen = 0
    while "$ref" in node and seen < _DEPTH_MAX:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node, seen = found, seen + 1
    return node


_METHODS = ("get", "post", "put", "patch", "delete")
_SPELLED = {
    "ach": "ACH",
    "csv": "CSV",
    "id": "ID",
    "json": "JSON",
    "oauth": "OAuth",
    "pin": "PIN",
    "pdf": "PDF",
    "usdc": "USDC",
    "v1": "v1",
}
_NAME_WORDS_MAX = 5
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"


class Content(StrEnum):
    """The format of a request body."""

    NONE = "none"
    JSON = "json"
    FORM = "form"
    FILE = "file"


class Proof(StrEnum):
    """The authentication of a request."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - a kind, not a secret
    TOKEN_AND_KEY = "token-and-key"  # noqa: S105 - as above
    SIGNATURE = "signature"
    OAUTH = "oauth"
    ASSERTION = "assertion"


@dataclass(frozen=True, kw_only=True)
class ApiOperation:
    """One method of one path of a document."""

    api: str
    """The name of its API in addresses: partner, customer, auth."""
    document: Node
    method: str
    path: str
    node: Node

    @property
    def id(self) -> str:
        """The operation's id in the document and in its address."""
        return str(self.node["operationId"])

    @property
    def name(self) -> str:
        """The operation's short name: verb and object."""
        return short_name(str(self.node["summary"]), self.id)

    @property
    def address(self) -> str:
        """The address of the operation's page."""
        return f"/docs/api/{self.api}/{self.id}"

    @cached_property
    def parameters(self) -> Sequence[Node]:
        """The operation's parameters, including those of every operation."""
        return [resolved(self.document, each) for each in self.node.get("parameters", [])]

    def parameters_in(self, place: str) -> list[Node]:
        """Return the parameters in the path, the query or a header."""
        return [each for each in self.parameters if each["in"] == place]

    @property
    def content(self) -> Content:
        """The format of its body."""
        kinds = self.node.get("requestBody", {}).get("content", {})
        if not kinds:
            return Content.NONE
        return Content.JSON if _JSON in kinds else Content.FORM if _FORM in kinds else Content.FILE

    @property
    def body_schema(self) -> Node:
        """The schema of its body."""
        kinds = self.node.get("requestBody", {}).get("content", {})
        return next((each.get("schema", {}) for each in kinds.values()), {})

    @property
    def request_example(self) -> Any:  # noqa: ANN401 - any JSON
        """The recorded example of its body; for a form, its required fields."""
        kinds = self.node.get("requestBody", {}).get("content", {})
        found = next((each["example"] for each in kinds.values() if "example" in each), None)
        return _form_example(self.body_schema) if self.content is Content.FORM else found

    @property
    def proof(self) -> Proof:
        """The authentication of its sender."""
        names = {each["name"].lower() for each in self.parameters_in("header")}
        security = self.node.get("security", [])
        if "client_assertion" in self.body_schema.get("required", []):
            return Proof.ASSERTION
        if not security:
            return Proof.NONE
        if any("CodeBearer" in each for each in security):
            return Proof.OAUTH
        if "x-service-signature" in names:
            return Proof.SIGNATURE
        return Proof.TOKEN_AND_KEY if "x-service-idempotency" in names else Proof.TOKEN

    @property
    def takes_key(self) -> bool:
        """True if a request carries an idempotency key."""
        keyed = self.proof in {Proof.TOKEN_AND_KEY, Proof.SIGNATURE}
        return keyed or (self.proof is Proof.OAUTH and self.method != "GET")

    @property
    def scopes(self) -> list[str]:
        """The scopes, of which a token needs one."""
        return [scope for each in self.node.get("security", []) for scopes in each.values() for scope in scopes]

    def responses(self, *, is_error: bool) -> list[tuple[str, Node]]:
        """Return its responses by status, either errors or the others."""
        found = sorted(self.node["responses"].items())
        return [(status, each) for status, each in found if status.startswith(("2", "3")) is not is_error]

    @property
    def answers(self) -> Mapping[str, Any]:
        """The contents of its first successful response, by media type."""
        first: Mapping[str, Any] = next((each for _, each in self.responses(is_error=False)), {})
        found: Mapping[str, Any] = first.get("content", {})
        return found


def operations_of(api: str, document: Node) -> Iterator[ApiOperation]:
    """Yield the operations of a document, in the order of their paths."""
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield ApiOperation(api=api, document=document, method=method.upper(), path=path, node=item[method])


def short_name(summary: str, operation_id: str) -> str:
    """Return a summary if it is short, else the words of the operation's id."""
    if len(summary.split()) <= _NAME_WORDS_MAX and not re.search(r"[,;:.]", summary):
        return summary
    first, *others = operation_id.split("_")
    return " ".join([_SPELLED.get(first, first.capitalize()), *(_SPELLED.get(each, each) for each in others)])


def group_name(tag: str) -> str:
    """Return a tag formatted as a heading."""
    first, *others = tag.split("-")
    return " ".join([_SPELLED.get(first, first.capitalize()), *(_SPELLED.get(each, each) for each in others)])


def _form_example(schema: Node) -> dict[str, str]:
    """Return the required fields of a form, except those that authenticate its sender."""
    properties = schema.get("properties", {})
    return {name: _value_of(properties[name]) for name in schema.get("required", []) if "client_assertion" not in name}


def _value_of(schema: Node) -> str:
    return str(schema["const"] if "const" in schema else (schema.get("enum") or ["..."])[-1])


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
        """True if the response is an endless stream."""
        return "text/event-stream" in self.operation.answers

    @property
    def is_redirect(self) -> bool:
        """True if the response redirects a browser."""
        return "303" in self.operation.node["responses"]

    @property
    def answers_json(self) -> bool:
        """True if the response is JSON."""
        return "application/json" in self.operation.answers


def call_of(operation: ApiOperation, variables: Mapping[str, str] | None = None, body: object = None) -> Call:
    """Return a call from the examples, optionally with other path values or another body."""
    known = variables or {}
    required = [each for each in operation.parameters_in("query") if each.get("required")]
    return Call(
        operation=operation,
        variables={
            each["name"]: known.get(each["name"]) or _parameter_value(each["name"], each.get("schema", {}))
            for each in operation.parameters_in("path")
        },
        body=operation.request_example if body is None else body,
        query="&".join(f"{each['name']}={_parameter_value(each['name'], each.get('schema', {}))}" for each in required),
    )


def _parameter_value(name: str, schema: Node) -> str:
    """Return an example value of a parameter; for an id, always the same for one name."""
    if "enum" in schema:
        return str(schema["enum"][0])
    if schema.get("format") == "uuid":
        return str(UUID(bytes=blake2b(name.encode(), digest_size=16).digest(), version=4))
    return _VALUES.get(name, _DAY if schema.get("format") == "date" else name)
