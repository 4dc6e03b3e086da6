"""The page of a resource of an API: the object, its states, its operations, its events and its errors."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from billfold.documentation.operations import ApiOperation, Node, list_of, resolved, rows_of
from billfold.documentation.site import Page
from billfold.platform.problems import PROBLEMS

_JSON = "application/json"
_STATUS = "status"


def resource_page(api: str, document: Mapping[str, Any], title: str, operations: Sequence[ApiOperation]) -> Page:
    """Return the page of what some operations read and change."""
    tag = str(operations[0].node["tags"][0])
    return Page(
        path=f"/docs/api/{api}/resources/{tag}",
        title=f"{title}: overview",
        text=partial(_text, document, title, tag, operations),
    )


def _text(document: Node, title: str, tag: str, operations: Sequence[ApiOperation]) -> str:
    shown = _object(document, operations)
    parts = {
        "The object": list_of(rows_of(document, shown)),
        "States": _states(document, shown),
        "Operations": _operations(operations),
        "Events": _events(document, tag),
        "Errors": _errors(operations),
    }
    return f"# {title}: overview\n\n" + "\n".join(f"## {name}\n\n{text}" for name, text in parts.items() if text)


def _object(document: Node, operations: Sequence[ApiOperation]) -> Node:
    """Return the schema of what an operation reads, else of what it lists; of several that with the most fields."""
    reads = [each for each in operations if each.method == "GET" and _JSON in each.answers]
    found = [resolved(document, each.answers[_JSON].get("schema", {})) for each in reads]
    single = [each for each in found if not _items(each)]
    listed = [resolved(document, items) for each in found if (items := _items(each))]
    return max(listed or single, key=lambda each: len(each.get("properties", {})), default={})


def _items(schema: Node) -> Node:
    """Return the schema of the entries of a list; an empty one of anything else."""
    lists: Node = schema if schema.get("type") == "array" else schema.get("properties", {}).get("items", {})
    found: Node = lists.get("items", {})
    return found


def _states(document: Node, schema: Node) -> str:
    """Return the states of each status that an object has."""
    properties = {name: resolved(document, each) for name, each in schema.get("properties", {}).items()}
    return "".join(
        f"`{name}`: {', '.join(f'`{state}`' for state in each['enum'])}.\n\n"
        for name, each in properties.items()
        if name.endswith(_STATUS) and "enum" in each
    )


def _operations(operations: Sequence[ApiOperation]) -> str:
    rows = "".join(f"| [{each.name}]({each.address}) | `{each.method} {each.path}` |\n" for each in operations)
    return f"| Operation | Path |\n|---|---|\n{rows}"


def _events(document: Node, tag: str) -> str:
    """Return the events in whose names the resource is."""
    singular = tag.rstrip("s")
    names = [
        name for name in document.get("webhooks", {}) if singular in {part.rstrip("s") for part in name.split(".")}
    ]
    return "".join(f"* [`{each}`](/docs/events/{each})\n" for each in names)


def _errors(operations: Sequence[ApiOperation]) -> str:
    found: dict[str, list[str]] = {}
    for operation in operations:
        for _, response in operation.responses(is_error=True):
            for code in response.get("x-problems", []):
                found.setdefault(code, []).append(operation.name)
    rows = "".join(
        f"| {PROBLEMS[code].status} | [`{code}`](/docs/errors/{code}) | {_of(names, len(operations))} |\n"
        for code, names in sorted(found.items())
    )
    return f"| Status | Code | Answered by |\n|---|---|---|\n{rows}" if rows else ""


def _of(names: Sequence[str], count: int) -> str:
    return "all" if len(set(names)) == count and count > 1 else ", ".join(dict.fromkeys(names))
