"""The parameters and fields of an operation as lines of Markdown: name, what it may be, what it means."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

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
    """Yield a row for each field of every variant; what is not in all of them says in which it is."""
    variants = _variants(document, schema)
    found: dict[Row, list[str]] = {}
    for name, variant in variants.items():
        for row in _fields(document, variant, prefix, depth=depth):
            found.setdefault(row, []).append(f"`{name}`")
    for row, names in found.items():
        everywhere = len(names) == len(variants)
        yield row if everywhere else row._replace(text=" ".join([f"With {', '.join(names)}.", row.text]).strip())


def _fields(document: Node, schema: Node, prefix: str, depth: int) -> Iterator[Row]:
    """Yield a row for each field of an object, those of objects within after the outer one."""
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
    """Return the objects that a value may be, by the value of the field that tells them apart."""
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
    """Say in a few words what a value may be."""
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
    """Return what a reference within the document leads to."""
    seen = 0
    while "$ref" in node and seen < _DEPTH_MAX:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node, seen = found, seen + 1
    return node
