"""The reference as one HTML page, written from an OpenAPI document.

Works without a script and without a network: a list of operations on the side, folded sections,
light and dark as the reader's system says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from billfold.http.authentication.signed_requests import KEY_HEADER, SIGNATURE_HEADER

Node = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")
_DEPTH_MAX = 6
_EVERYWHERE = (KEY_HEADER, SIGNATURE_HEADER)
"""Headers that are told of once, not at every operation."""


def as_page(document: Node) -> str:
    """Return the whole reference as an HTML document."""
    info = document["info"]
    groups = list(_groups(document))
    body = "".join(
        f'<section><h2 id="{escape(tag)}">{_heading(tag)}</h2>'
        + "".join(_operation(document, *each) for each in operations)
        + "</section>"
        for tag, operations in groups
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(info['title'])}</title><style>{_style()}</style></head><body>"
        f"<nav><strong>{escape(info['title'])}</strong>"
        f'<p><a href="/openapi.json">openapi.json</a><a href="/docs/errors/">Errors</a></p>'
        f"{_side(groups)}</nav><main><h1>{escape(info['title'])}</h1>"
        f'<p class="quiet">Version {escape(info["version"])}</p>'
        f"{_prose(info.get('description', ''))}{body}</main></body></html>"
    )


@cache
def _style() -> str:
    return files(__package__).joinpath("reference.css").read_text()


Each = tuple[str, str, Node]


def _groups(document: Node) -> Iterator[tuple[str, list[Each]]]:
    """Yield what belongs to each tag: operations, and under the last one what we call at others."""
    called = [*document["paths"].items(), *document.get("webhooks", {}).items()]
    for tag in document.get("tags", []):
        yield (
            tag["name"],
            [
                (path, method, item[method])
                for path, item in called
                for method in _METHODS
                if method in item and tag["name"] in item[method].get("tags", [])
            ],
        )


def _side(groups: list[tuple[str, list[Each]]]) -> str:
    return "".join(
        f"<h2>{_heading(tag)}</h2><ul>"
        + "".join(
            f'<li><a href="#{escape(each["operationId"])}">{escape(each["summary"])}</a></li>'
            for _, _, each in operations
        )
        + "</ul>"
        for tag, operations in groups
    )


def _operation(document: Node, path: str, method: str, operation: Node) -> str:
    name = escape(operation["operationId"])
    badges = '<span class="tag">deprecated</span> ' if operation.get("deprecated") else ""
    badges += '<span class="tag">moves money</span>' if operation.get("x-moves-money") else ""
    description = operation.get("description", "")
    prose = "" if description.rstrip(".") == operation["summary"] else _prose(description)
    return (
        f'<article id="{name}"><h3>{escape(operation["summary"])} {badges}</h3>'
        f'<p class="path"><span class="method {method}">{method.upper()}</span>{escape(path)}</p>'
        f"{prose}{_parameters(document, operation)}{_request(document, operation)}"
        f"{_responses(document, operation)}</article>"
    )


def _parameters(document: Node, operation: Node) -> str:
    rows = ""
    for each in (_resolved(document, one) for one in operation.get("parameters", [])):
        if each["name"] not in _EVERYWHERE:
            note = f"in {each['in']}. {each.get('description', '')}"
            needed = each.get("required", False)
            rows += _row(document, each["name"], each.get("schema", {}), required=needed, note=note)
    return f"<details open><summary>Parameters</summary>{_table(rows)}</details>" if rows else ""


def _request(document: Node, operation: Node) -> str:
    body = operation.get("requestBody")
    if not body:
        return ""
    parts = [
        f'<p class="quiet">{escape(kind)}</p>{_schema(document, content.get("schema", {}))}{_example(content)}'
        for kind, content in body["content"].items()
    ]
    return f"<details open><summary>Request</summary>{''.join(parts)}</details>"


def _responses(document: Node, operation: Node) -> str:
    good, bad = "", ""
    for status, response in sorted(operation["responses"].items()):
        if status.startswith(("2", "3")):
            parts = "".join(
                f"{_schema(document, content.get('schema', {}))}{_example(content)}"
                for content in response.get("content", {}).values()
            )
            parts = parts or f"<p>{escape(response.get('description', ''))}</p>"
            good += f"<details><summary>Answer {status}</summary>{parts}</details>"
        else:
            codes = ", ".join(
                f'<a href="/docs/errors/{escape(code)}"><code>{escape(code)}</code></a>'
                for code in response.get("x-problems", [])
            )
            text = codes or escape(response.get("description", ""))
            bad += f"<tr><td>{status}</td><td>{text}</td></tr>"
    return f"{good}<details><summary>Errors</summary><table>{bad}</table></details>"


def _schema(document: Node, schema: Node) -> str:
    rows = "".join(_rows(document, schema, "", depth=0))
    return _table(rows) if rows else f"<p>{_kind(document, schema)}</p>"


def _rows(document: Node, schema: Node, prefix: str, depth: int) -> Iterator[str]:
    """Yield a row for each field, those of objects within behind the name of the outer."""
    schema = _resolved(document, schema)
    required = schema.get("required", [])
    for name, each in schema.get("properties", {}).items():
        yield _row(document, prefix + name, each, required=name in required, note="")
        inner, mark = _inside(document, each)
        if depth < _DEPTH_MAX and inner.get("properties"):
            yield from _rows(document, inner, f"{prefix}{name}{mark}.", depth=depth + 1)


def _inside(document: Node, schema: Node) -> tuple[Node, str]:
    schema = _resolved(document, schema)
    if schema.get("type") == "array":
        return _resolved(document, schema.get("items", {})), "[]"
    choices = [_resolved(document, each) for each in schema.get("oneOf", schema.get("anyOf", []))]
    objects = [each for each in choices if each.get("properties")]
    return (objects[0], "") if len(objects) == 1 else (schema, "")


def _row(document: Node, name: str, schema: Node, *, required: bool, note: str) -> str:
    resolved = _resolved(document, schema)
    text = " ".join(part for part in (note, resolved.get("description", "")) if part)
    need = "" if required else ' <span class="quiet">optional</span>'
    return (
        f"<tr><td><code>{escape(name)}</code>{need}</td><td>{_kind(document, schema)}</td><td>{_rich(text)}</td></tr>"
    )


def _kind(document: Node, schema: Node) -> str:
    """Say in a few words what a value may be."""
    schema = _resolved(document, schema)
    if "const" in schema:
        return f"<code>{escape(json.dumps(schema['const']))}</code>"
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        return " or ".join(dict.fromkeys(_kind(document, each) for each in choices))
    if schema.get("type") == "array":
        return f"list of {_kind(document, schema.get('items', {}))}"
    kind = schema.get("type", "anything")
    text = " or ".join(kind) if isinstance(kind, list) else kind
    limits = [f"{word} {schema[key]}" for key, word in _LIMITS.items() if key in schema]
    return escape(" ".join([text, *([f"({schema['format']})"] if "format" in schema else []), *limits]))


_LIMITS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "exclusiveMaximum": "below",
    "minLength": "at least chars",
    "maxLength": "at most chars",
    "pattern": "like",
}


def _resolved(document: Node, node: Node) -> Node:
    seen = 0
    while "$ref" in node and seen < _DEPTH_MAX:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node, seen = found, seen + 1
    return node


def _example(content: Node) -> str:
    if "example" not in content:
        return ""
    text = json.dumps(content["example"], indent=2, ensure_ascii=False)
    return f"<pre><code>{escape(text)}</code></pre>"


def _table(rows: str) -> str:
    return f"<table><tr><th>Name</th><th>Type</th><th>Meaning</th></tr>{rows}</table>" if rows else ""


def _prose(text: str) -> str:
    return "".join(f"<p>{_rich(part)}</p>" for part in text.split("\n\n") if part.strip())


def _rich(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _heading(tag: str) -> str:
    return escape(tag.replace("-", " "))
