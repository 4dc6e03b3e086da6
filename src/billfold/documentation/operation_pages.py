"""The book of an API: an introduction, and a page for each operation, grouped as in its document."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from billfold.documentation.operations import (
    ApiOperation,
    Content,
    Proof,
    group_name,
    list_of,
    operations_of,
    parameter_rows,
    rows_of,
)
from billfold.documentation.resource_pages import resource_page
from billfold.documentation.samples import samples_of
from billfold.documentation.site import Book, Group, Page
from billfold.platform.problems import PROBLEMS

_OF_EVERY_REQUEST = {"x-service-idempotency", "x-service-signature", "idempotency-key"}
_PROOFS = {
    Proof.NONE: "No token.",
    Proof.TOKEN: "A token: `Authorization: Bearer`.",
    Proof.TOKEN_AND_KEY: "A token and an idempotency key, no signature.",
    Proof.SIGNATURE: "A token, an idempotency key and a signature: [sign a request](/docs/guides/sign_a_request).",
    Proof.OAUTH: "An access token",
    Proof.ASSERTION: "The client proves itself by a `private_key_jwt` assertion.",
}


def api_book(name: str, document: Mapping[str, Any]) -> Book:
    """Return the book of an API by its name in addresses."""
    title = str(document["info"]["title"])
    by_tag: dict[str, list[ApiOperation]] = {}
    for each in operations_of(name, document):
        by_tag.setdefault(each.node["tags"][0], []).append(each)
    groups = {group_name(tag): by_tag[tag] for tag in sorted(by_tag)}
    first = Page(path=f"/docs/api/{name}", title=title, text=partial(_introduction, name, document, groups))
    resources = [
        Group(each, [resource_page(name, document, each, operations), *map(_page, operations)])
        for each, operations in groups.items()
    ]
    return Book(title, [Group("Introduction", [first]), *resources])


def _introduction(name: str, document: Mapping[str, Any], groups: Mapping[str, list[ApiOperation]]) -> str:
    info = document["info"]
    server = document["servers"][0]["url"] if document.get("servers") else ""
    operations = "".join(
        f"\n## {title}\n\n| Operation | Path |\n|---|---|\n"
        + "".join(f"| [{each.name}]({each.address}) | `{each.method} {each.path}` |\n" for each in group)
        for title, group in groups.items()
    )
    return (
        f"# {info['title']}\n\nVersion {info['version']}, at `{server}`. "
        f"[The OpenAPI document](/docs/api/{name}/openapi.json), the same for "
        f"[Postman](/docs/api/{name}/postman.json), [Bruno](/docs/api/{name}/bruno.zip) and "
        f"[editors](/docs/api/{name}/requests.http), "
        "[how to run the samples](/docs/guides/run_the_samples), "
        f"[all errors](/docs/errors), [all events](/docs/events).\n\n{info.get('description', '')}\n{operations}"
    )


def _page(operation: ApiOperation) -> Page:
    return Page(
        path=operation.address,
        title=operation.name,
        text=partial(_text, operation),
        samples=partial(samples_of, operation),
        operation=operation,
        kind=operation.method,
    )


def _text(operation: ApiOperation) -> str:
    parts = [
        f"# {operation.name}\n",
        f"`{operation.method}` `{operation.path}`\n",
        _description(operation),
        _proof(operation),
        *(_parameters(operation, place, title) for place, title in _PLACES.items()),
        _body(operation),
        *_responses(operation),
        _errors(operation),
    ]
    return "\n".join(filter(None, parts))


_PLACES = {"path": "Path", "query": "Query", "header": "Headers"}


def _description(operation: ApiOperation) -> str:
    summary, text = (str(operation.node.get(each, "")) for each in ("summary", "description"))
    is_same = text.rstrip(".") == summary
    shown = [each for each in (f"{summary}." if summary != operation.name else "", "" if is_same else text) if each]
    if operation.node.get("deprecated"):
        shown.append("**Deprecated.**")
    if operation.node.get("x-moves-money"):
        shown.append("Moves money.")
    return "\n\n".join(shown) + "\n" if shown else ""


def _proof(operation: ApiOperation) -> str:
    text = _PROOFS[operation.proof]
    if operation.proof is Proof.OAUTH:
        scopes = " or ".join(f"`{each}`" for each in operation.scopes)
        text += f" with the scope {scopes}." if scopes else "."
    return f"{text}\n"


def _parameters(operation: ApiOperation, place: str, title: str) -> str:
    found = [each for each in operation.parameters_in(place) if each["name"].lower() not in _OF_EVERY_REQUEST]
    return _section(title, list_of(parameter_rows(operation.document, found)))


def _body(operation: ApiOperation) -> str:
    if operation.content is Content.NONE:
        return ""
    kinds = operation.node["requestBody"]["content"]
    if operation.content is Content.FILE:
        return _section("Body", f"{operation.node['requestBody'].get('description', '')} {', '.join(kinds)}.\n")
    return _section("Body", f"`{next(iter(kinds))}`\n\n" + list_of(rows_of(operation.document, operation.body_schema)))


def _responses(operation: ApiOperation) -> list[str]:
    found = []
    for status, response in operation.responses(is_error=False):
        fields = "".join(
            list_of(rows_of(operation.document, content.get("schema", {}))) or f"`{kind}`\n"
            for kind, content in response.get("content", {}).items()
        )
        said = response.get("description", "")
        usual = status.isdigit() and said == HTTPStatus(int(status)).description
        text = "\n\n".join(filter(None, ["" if usual and fields else f"{said}.".replace("..", "."), fields]))
        found.append(_section(f"Response {status}", text))
    return found


def _errors(operation: ApiOperation) -> str:
    rows = []
    for status, response in operation.responses(is_error=True):
        codes = response.get("x-problems", [])
        rows += [f"| {status} | [`{each}`](/docs/errors/{each}) | {PROBLEMS[each].title} |\n" for each in codes]
        if not codes and response.get("description"):
            rows.append(f"| {status} | | {response['description']} |\n")
    return _section("Errors", "| Status | Code | Meaning |\n|---|---|---|\n" + "".join(rows)) if rows else ""


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""
