"""The OpenAPI document of an application, made from its code.

The framework describes paths, parameters and bodies; added here are the spelling with the
closing slash, the three headers, the errors every operation can answer, and the examples.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from litestar import Litestar
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler

from billfold.interfaces.http.door import KEY_HEADER, SIGNATURE_HEADER
from billfold.interfaces.http.operations import door_of, operation_name
from billfold.interfaces.http.parameters import shaped
from billfold.interfaces.http.signatures import plain_signatures
from billfold.kit.problems import PROBLEMS

Document = dict[str, Any]
Examples = Mapping[str, Mapping[str, Any]]
_PROBLEM_REF = {"$ref": "#/components/schemas/Problem"}
_ALWAYS = ("rate-limited", "internal-error", "unavailable")
_PROVEN_AT = {
    "bearer": ("unauthorized", "invalid-signature", "ambiguous-signature"),
    "unsigned": ("unauthorized",),
    "signed": ("unauthorized", "invalid-signature", "ambiguous-signature"),
    "granted": ("unauthorized", "invalid-dpop-proof", "forbidden"),
}
_NO_BODY = {"application/json": {"schema": {"type": "null"}}}
_ALWAYS_KEYED = ("bearer", "unsigned", "signed")
_KEYED = ("idempotency-in-progress", "idempotency-key-reused")
_WITH_BODY = ("malformed-json", "payload-too-large", "unsupported-media-type")
_REFS = {
    "key": {"$ref": "#/components/parameters/IdempotencyKey"},
    "signature": {"$ref": "#/components/parameters/Signature"},
}
_WEBHOOKS = {"name": "webhooks", "description": "What is sent to the addresses of subscriptions."}
COMPONENTS: Document = {
    "securitySchemes": {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "The token of `/api/v1/login/` or `/token/`, valid for one hour.",
        }
    },
    "parameters": {
        "IdempotencyKey": {
            "name": KEY_HEADER,
            "in": "header",
            "required": True,
            "description": "A random UUID, new for every action. The same request under the same "
            "key gets the same answer for 24 hours; nothing runs twice.",
            "schema": {"type": "string", "format": "uuid"},
        },
        "Signature": {
            "name": SIGNATURE_HEADER,
            "in": "header",
            "required": True,
            "description": "Base64 of HMAC-SHA256, keyed with the shared secret, over idempotency "
            "key + path (no host, no query) + the bytes of the body, nothing between them.",
            "schema": {"type": "string", "minLength": 44, "maxLength": 44},
        },
    },
    "schemas": {
        "Problem": {
            "title": "Problem",
            "description": "What went wrong (RFC 9457). `code` is stable; `detail` is for people.",
            "type": "object",
            "required": [
                "type", "title", "status", "detail", "instance", "code", "trace_id", "retryable",
            ],
            "properties": {
                "type": {"type": "string", "format": "uri"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string"},
                "instance": {"type": "string"},
                "code": {"type": "string"},
                "trace_id": {"type": "string"},
                "retryable": {"type": "boolean"},
            },
        },
        "InvalidRequest": {
            "title": "InvalidRequest",
            "description": "The request does not have the declared shape: one entry per mistake.",
            "type": "object",
            "required": ["detail"],
            "properties": {
                "detail": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["loc", "msg", "type"],
                        "properties": {
                            "loc": {
                                "type": "array",
                                "items": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                            },
                            "msg": {"type": "string"},
                            "type": {"type": "string"},
                        },
                    },
                }
            },
        },
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a document is made of: routes, injected names, title, and where calls go."""

    routes: Sequence[ControllerRouterHandler]
    injected: Sequence[str]
    title: str
    version: str
    description: str
    servers: Sequence[Mapping[str, Any]] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    examples: Examples = field(default_factory=dict)
    components: Document = field(default_factory=lambda: COMPONENTS)
    """Schemes, parameters and schemas that operations refer to."""
    webhooks: Document = field(default_factory=dict)
    """What we call at others, by name."""


def describe(what: Described, *, include_deprecated: bool = False) -> Document:
    """Return the document; operations on their way out only when asked for."""
    app = _documented(what)
    document: Document = app.openapi_schema.to_schema()
    handlers = dict(_handlers(app))
    paths: Document = {}
    for path, item in document.pop("paths", {}).items():
        kept = {
            method: _finished(operation, path, handlers[path, method], what.examples)
            for method, operation in item.items()
            if include_deprecated or "deprecated" not in handlers[path, method].opt
        }
        if kept:
            paths[spelled(path)] = kept
    components = document.setdefault("components", {})
    for kind, entries in what.components.items():
        components[kind] = {**components.get(kind, {}), **entries}
    used = sorted(
        {tag for item in paths.values() for each in item.values() for tag in each["tags"]}
    )
    document["tags"] = [{"name": tag, "description": what.tags.get(tag, "")} for tag in used]
    document["servers"] = [dict(server) for server in what.servers]
    document["paths"] = dict(sorted(paths.items()))
    if what.webhooks:
        document["webhooks"] = what.webhooks
        document["tags"].append(_WEBHOOKS)
    return _renamed(_with_closed_requests(_without_loose_schemas(document)))


def spelled(path: str) -> str:
    """Return a path as it is published: with the closing slash below /api/ and at /token/."""
    published = path.startswith("/api/") or path == "/token"
    whole = path.endswith(("/", ".csv"))
    return path + "/" if published and not whole else path


def _documented(what: Described) -> Litestar:
    """Return an application of the same routes that is only asked for its description."""

    def stand_in(name: str) -> Provide:
        # One for each name: the framework refuses the same provider under two.
        return Provide(lambda: name, sync_to_thread=False)

    config = OpenAPIConfig(
        title=what.title,
        version=what.version,
        description=what.description,
        use_handler_docstrings=True,
        operation_id_creator=lambda handler, _method, _parts: operation_name(handler),
    )
    with plain_signatures():
        return Litestar(
            route_handlers=what.routes,
            dependencies={name: stand_in(name) for name in what.injected},
            openapi_config=config,
            logging_config=None,
        )


def _handlers(app: Litestar) -> Iterator[tuple[tuple[str, str], HTTPRouteHandler]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                yield (route.path_format or "/", method.lower()), handler


def _finished(
    operation: Document, path: str, handler: HTTPRouteHandler, examples: Examples
) -> Document:
    door = door_of(handler, path)
    text = inspect.getdoc(handler.fn) or ""
    summary, _, rest = text.partition("\n\n")
    operation["summary"] = " ".join(summary.split()).rstrip(".")
    operation["description"] = rest or " ".join(summary.split())
    operation["operationId"] = operation_name(handler)
    operation["tags"] = operation.get("tags") or [_tag_of(handler)]
    operation["security"] = _security(handler, door)
    if "parameters" in operation:
        operation["parameters"] = [shaped(each) for each in operation["parameters"]]
    if named := _headers_of(handler, door):
        operation.setdefault("parameters", []).extend(named)
    responses = operation["responses"]
    responses.pop("400", None)
    for answer in responses.values():
        if answer.get("content") == _NO_BODY:
            del answer["content"]
    responses.update(_refusals(operation, path, handler, door))
    if handler.opt.get("moves_money"):
        operation["x-moves-money"] = True
    if handler.opt.get("deprecated"):
        operation["deprecated"] = True
        operation["x-sunset"] = handler.opt["deprecated"][1].isoformat()
    for part, told in handler.opt.get("documented", {}).items():
        known = operation.get(part)
        operation[part] = known | told if isinstance(known, dict) else told
    operation["responses"] = dict(sorted(operation["responses"].items()))
    _exemplify(operation, examples.get(operation["operationId"], {}))
    return operation


def _security(handler: HTTPRouteHandler, door: str) -> list[Document]:
    if door == "open":
        return []
    return [{"CodeBearer": [handler.opt["scope"]]} if door == "granted" else {"bearer": []}]


def _headers_of(handler: HTTPRouteHandler, door: str) -> list[Document]:
    """Return the headers a request may or must carry beside its token."""
    if door == "signed":
        return [*_REFS.values()]
    if door == "unsigned":
        return [_REFS["key"]]
    return [_REFS["key"]] if door == "granted" and _changes(handler) else []


def _changes(handler: HTTPRouteHandler) -> bool:
    return bool({"POST", "PUT", "PATCH", "DELETE"} & set(handler.http_methods))


def _tag_of(handler: HTTPRouteHandler) -> str:
    return str(handler.fn.__module__).rpartition(".")[2].replace("_", "-")


def _refusals(operation: Document, path: str, handler: HTTPRouteHandler, door: str) -> Document:
    """Return the error responses of an operation, by status, each naming its codes."""
    codes = {*_ALWAYS, *handler.opt.get("problems", ())}
    codes |= {*_PROVEN_AT.get(door, ())}
    if door in _ALWAYS_KEYED or (door == "granted" and _changes(handler)):
        codes |= {*_KEYED}
    if "requestBody" in operation:
        codes |= {*_WITH_BODY}
    if "{" in path:
        codes.add("not-found")
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    answers = {str(status): _refused(status, named) for status, named in sorted(by_status.items())}
    shaped = answers.setdefault("422", {"description": "", "content": {}, "x-problems": []})
    shaped["description"] = ", ".join(["the request has another shape", *shaped["x-problems"]])
    shaped["content"]["application/json"] = {
        "schema": {"$ref": "#/components/schemas/InvalidRequest"}
    }
    return answers


def _refused(status: int, codes: list[str]) -> Document:
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {"application/problem+json": {"schema": _PROBLEM_REF}},
        "x-problems": codes,
    }


def _exemplify(operation: Document, examples: Mapping[str, Any]) -> None:
    """Put the example of a request and of the answer that is no error in their places."""
    if "request" in examples and "requestBody" in operation:
        for content in operation["requestBody"]["content"].values():
            content["example"] = examples["request"]
    if "response" in examples:
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                content = response.setdefault("content", {}).setdefault("application/json", {})
                content["example"] = examples["response"]


def _without_loose_schemas(document: Document) -> Document:
    """Drop schemas that nothing refers to any more."""
    schemas: Document = document["components"]["schemas"]
    wanted = _reached_from(document["paths"], schemas)
    document["components"]["schemas"] = {name: schemas[name] for name in sorted(wanted)}
    return document


def _with_closed_requests(document: Document) -> Document:
    """Say of every object in a body that it takes no other field: what has one is refused."""
    schemas: Document = document["components"]["schemas"]
    operations = [each for item in document["paths"].values() for each in item.values()]
    for name in _reached_from([each.get("requestBody") for each in operations], schemas):
        if schemas[name].get("type") == "object":
            schemas[name]["additionalProperties"] = False
    return document


def _reached_from(start: object, schemas: Document) -> set[str]:
    """Return the names of the schemas that something refers to, by way of others too."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for name in set(_references(waiting.pop())) - reached:
            reached.add(name)
            waiting.append(schemas[name])
    return reached


def _renamed(document: Document) -> Document:
    """Take the names of our modules out of the names of schemas."""
    text = json.dumps(document)
    for name in sorted(document["components"]["schemas"], key=len, reverse=True):
        if "billfold." in name:
            text = text.replace(json.dumps(name)[1:-1], _short(name))
    renamed: Document = json.loads(text)
    return renamed


def _short(name: str) -> str:
    """Shorten `CursorList_billfold.x.pocket.Pocket_` to `CursorList_Pocket`; of many kinds of
    one module only the module is told.
    """
    outer, *inner = name.rstrip("_").split("_billfold.")
    kinds = [each.rpartition(".")[2].rstrip("_") for each in inner]
    if len(kinds) > 1:
        kinds = [inner[0].split(".")[-2].title()]
    return "_".join([outer, *kinds])


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        ref = value.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/components/schemas/"):
            yield ref.rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)
