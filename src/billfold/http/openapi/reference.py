"""The reference as one HTML page, written from an OpenAPI document, and the pages of problems.

They work without a script and without a network, light and dark as the reader's system says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from html import escape
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from billfold.http.authentication.signed_requests import KEY_HEADER, SIGNATURE_HEADER
from billfold.platform.problems.problem import Problem

Node = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")
_DEPTH_MAX = 6
_EVERYWHERE = (KEY_HEADER, SIGNATURE_HEADER)
"""Headers that are documented once, not at every operation."""
_LIMITS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "exclusiveMaximum": "below",
    "minLength": "at least chars",
    "maxLength": "at most chars",
    "pattern": "like",
}


class Row(NamedTuple):
    """A parameter or field: what stands between backquotes in its texts is code."""

    name: str
    kind: str
    text: str
    required: bool


def as_page(document: Node) -> str:
    """Return the whole reference as an HTML document."""
    return _render(
        "reference.html",
        info=document["info"],
        base=document["servers"][0]["url"] if document.get("servers") else "",
        groups=list(_groups(document)),
        scopes_of=_scopes,
        parameters_of=partial(_parameters, document),
        rows_of=lambda schema: list(_rows(document, schema, "", depth=0)),
        kind_of=partial(_kind, document),
        pretty=partial(json.dumps, indent=2, ensure_ascii=False),
    )


def problem_page(problem: Problem) -> str:
    """Return the page of one problem as an HTML document."""
    return _render("problem.html", problem=problem, hint=_retry_hint(problem))


def problem_index(problems: Iterable[Problem]) -> str:
    """Return the table of all problems, in the order of their codes, as an HTML document."""
    return _render("problems.html", problems=sorted(problems, key=lambda each: each.code))


def problem_as_markdown(problem: Problem) -> str:
    """Return the page of one problem as Markdown."""
    return (
        f"# {problem.title}\n\n"
        f"`{problem.code}`, status {problem.status}, {_retry_hint(problem)}\n\n"
        f"## What it means\n\n{problem.meaning}\n\n"
        f"## What to do\n\n{problem.remedy}\n"
    )


def problem_index_as_markdown(problems: Iterable[Problem]) -> str:
    """Return the table of all problems, in the order of their codes, as Markdown."""
    rows = "".join(
        f"| [`{each.code}`](errors/{each.code}) | {each.status} | {each.title} |\n"
        for each in sorted(problems, key=lambda each: each.code)
    )
    return f"# Errors\n\n| Code | Status | Title |\n|---|---|---|\n{rows}"


def _retry_hint(problem: Problem) -> str:
    return f"the same request {'may be sent' if problem.retryable else 'will fail'} again"


def _render(name: str, **facts: Any) -> str:
    templates = Environment(
        loader=PackageLoader(__package__ or ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["rich"] = _rich
    return templates.get_template(name).render(**facts)


def _rich(text: str) -> str:
    """Escape a text, and turn what stands between backquotes into code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _groups(document: Node) -> Iterator[tuple[str, list[tuple[str, str, Node]]]]:
    """Yield what belongs to each tag: (path, method, operation), and under the last one the webhooks."""
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


def _parameters(document: Node, operation: Node) -> list[Row]:
    found = [_resolved(document, each) for each in operation.get("parameters", [])]
    return [
        _row(
            document,
            each["name"],
            each.get("schema", {}),
            required=each.get("required", False),
            note=f"in {each['in']}. {each.get('description', '')}",
        )
        for each in found
        if each["name"] not in _EVERYWHERE
    ]


def _rows(document: Node, schema: Node, prefix: str, depth: int) -> Iterator[Row]:
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
        yield _row(document, prefix + name, each, required=name in required, note="")
        inner, mark = _inside(document, each)
        if depth < _DEPTH_MAX:
            yield from _rows(document, inner, f"{prefix}{name}{mark}.", depth=depth + 1)


def _row(document: Node, name: str, schema: Node, *, required: bool, note: str) -> Row:
    texts = (note, _resolved(document, schema).get("description", ""))
    return Row(name, _kind(document, schema), " ".join(filter(None, texts)), required=required)


def _inside(document: Node, schema: Node) -> tuple[Node, str]:
    schema = _resolved(document, schema)
    if schema.get("type") == "array":
        return _resolved(document, schema.get("items", {})), "[]"
    return schema, ""


def _variants(document: Node, schema: Node) -> dict[str, Node]:
    """Return the objects that a value may be, by the value of the field that tells them apart."""
    schema = _resolved(document, schema)
    choices = schema.get("oneOf") or schema.get("anyOf") or [schema]
    objects = [each for each in (_resolved(document, each) for each in choices) if each.get("properties")]
    told_by = schema.get("discriminator", {}).get("propertyName", "type")
    return {_variant_name(each, told_by) or str(place): each for place, each in enumerate(objects, start=1)}


def _variant_name(schema: Node, told_by: str) -> str:
    field = schema["properties"].get(told_by, {})
    names = [field["const"]] if "const" in field else field.get("enum", [])
    return " | ".join(names) or str(schema.get("title", ""))


def _scopes(operation: Node) -> list[str] | None:
    """Return the scopes of which a token needs one, none if any token will do; None without a token."""
    security = operation.get("security")
    return [scope for each in security for scopes in each.values() for scope in scopes] if security else None


def _kind(document: Node, schema: Node) -> str:
    """Say in a few words what a value may be."""
    schema = _resolved(document, schema)
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " | ".join("null" if each is None else f"`{each}`" for each in schema["enum"])
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        return " or ".join(dict.fromkeys(_kind(document, each) for each in choices))
    if schema.get("type") == "array":
        return f"list of {_kind(document, schema.get('items', {}))}"
    kind = schema.get("type", "anything")
    text = " or ".join(kind) if isinstance(kind, list) else kind
    limits = [f"{word} {schema[key]}" for key, word in _LIMITS.items() if key in schema]
    return " ".join([text, *([f"({schema['format']})"] if "format" in schema else []), *limits])


def _resolved(document: Node, node: Node) -> Node:
    seen = 0
    while "$ref" in node and seen < _DEPTH_MAX:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node, seen = found, seen + 1
    return node
