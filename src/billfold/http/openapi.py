"""The OpenAPI document of an API, made from its table of operations."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, cached_property
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec

from billfold.http.json_schema import Schemas
from billfold.http.operations import OPEN, Access, Operation, Proof, get
from billfold.http.parameters import Parameter, path_schema
from billfold.http.raw_request import KEY_HEADER, SIGNATURE_HEADER
from billfold.http.responses import JSON, TEXT, HttpResponse
from billfold.ledger.bank import Bank
from billfold.platform.database.shortage import database_unavailable
from billfold.platform.file_kinds import FileKind
from billfold.platform.problems import PROBLEMS

HEALTH_SECONDS = 2.0


class Reference:
    """The OpenAPI document of an API, made when it is first read."""

    def __init__(self, document: Callable[[], dict[str, Any]]) -> None:
        self._document = document

    @cached_property
    def as_json(self) -> bytes:
        """The OpenAPI document."""
        return msgspec.json.format(msgspec.json.encode(self._document()), indent=2)


@get("/health", OPEN, hidden=True)
async def show_health(bank: Bank) -> HttpResponse:
    """Tell whether the bank is open: its database answers."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await bank.pool.fetchval("SELECT 1")
    except Exception as error:
        raise database_unavailable() from error
    return HttpResponse(200, TEXT, b"OK")


@get("/", OPEN, hidden=True)
async def redirect_to_documentation() -> HttpResponse:
    """Redirect a browser from the address of the API to the documentation."""
    return HttpResponse(302, TEXT, b"See /docs/", headers=[(b"location", b"/docs/")])


@get("/openapi.json", OPEN, hidden=True)
async def show_openapi(reference: Reference) -> HttpResponse:
    """Show the OpenAPI document."""
    return HttpResponse(200, JSON, reference.as_json)


PAGES: list[Operation] = [
    show_health,
    redirect_to_documentation,
    show_openapi,
]


Document = dict[str, Any]
Examples = Mapping[str, Mapping[str, Any]]
_PROBLEM_REF = {"$ref": "#/components/schemas/Problem"}
_ALWAYS = ("rate-limited", "internal-error", "unavailable")
_PROOF_FAILS: Mapping[Proof, Sequence[str]] = {
    Proof.NONE: (),
    Proof.TOKEN: ("unauthorized", "invalid-signature", "ambiguous-signature"),
    Proof.TOKEN_AND_KEY: ("unauthorized",),
    Proof.SIGNATURE: ("unauthorized", "invalid-signature", "ambiguous-signature"),
    Proof.OAUTH: ("unauthorized", "invalid-dpop-proof", "forbidden"),
}
_KEYED = ("idempotency-in-progress", "idempotency-key-reused")
_WITH_FILE = ("payload-too-large", "unsupported-media-type", "document-not-readable")
_WITH_BODY = ("malformed-json", "payload-too-large", "unsupported-media-type")
_REFS = {
    "key": {"$ref": "#/components/parameters/IdempotencyKey"},
    "signature": {"$ref": "#/components/parameters/Signature"},
}
_WEBHOOKS = {"name": "webhooks", "description": "Events sent to the URLs of subscriptions."}
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}


def _shape(**properties: Document) -> Document:
    """Return the schema of an object whose properties are all required."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _list_of(items: Document) -> Document:
    return {"type": "array", "items": items}


_HAS_PREVIEW = (
    "\n\nWith the header `Prefer: preview` it shows what it would do, and does nothing. With `Preview-Id` it does what "
    "that preview showed within the last minute, once, or is refused."
)
_FILE: Document = {
    "required": True,
    "description": "A form with the file. Its bytes may also be the whole body, under their own content type.",
    "content": {
        "multipart/form-data": {
            "schema": _shape(file={"type": "string", "format": "binary"}),
            "encoding": {"file": {"contentType": ", ".join(FileKind)}},
        },
    },
}
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
            "key + path (no host, no query) + the bytes of the body, nothing between them. For "
            '`GET /api/v2/pockets/?limit=1` that is key + `/api/v2/pockets/`: `printf %s "$key/api/v2/pockets/" | '
            'openssl dgst -sha256 -hmac "$secret" -binary | base64`.',
            "schema": {"type": "string", "minLength": 44, "maxLength": 44},
        },
    },
    "schemas": {
        "Problem": {
            **_shape(
                type={"type": "string", "format": "uri"},
                title=_TEXT,
                status=_NUMBER,
                detail=_TEXT,
                instance=_TEXT,
                code=_TEXT,
                trace_id=_TEXT,
                retryable={"type": "boolean"},
            ),
            "title": "Problem",
            "description": "What went wrong (RFC 9457). `code` is stable; `detail` is for people.",
        },
        "InvalidRequest": {
            **_shape(
                detail=_list_of(_shape(loc=_list_of({"oneOf": [_TEXT, _NUMBER]}), msg=_TEXT, type=_TEXT)),
            ),
            "title": "InvalidRequest",
            "description": "The request does not have the declared shape: one entry per mistake.",
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The contents of an OpenAPI document: operations, authentication, title, servers."""

    operations: Sequence[Operation]
    proofs: frozenset[Proof]
    title: str
    version: str
    description: str
    servers: Sequence[Mapping[str, Any]] = ()
    examples: Examples = field(default_factory=dict)
    components: Document = field(default_factory=lambda: COMPONENTS)
    """Schemes, parameters and schemas that operations refer to."""
    webhooks: Document = field(default_factory=dict)
    """The webhooks that we call, by name."""
    preview: Any = None
    """The type of the answer to a request that only previews."""


@cache
def examples_of(module: str) -> Examples:
    """Return the examples next to the module of an API: operationId -> {"request": ..., "response": ...}."""
    package, _, name = module.rpartition(".")
    found: Examples = msgspec.json.decode(files(package).joinpath(f"{name}_examples.json").read_bytes())
    return found


def describe(what: Described, *, include_deprecated: bool = False) -> Document:
    """Return the document; with `include_deprecated` deprecated operations too."""
    schemas = Schemas()
    paths: Document = {}
    for each in what.operations:
        access = each.access_by(what.proofs)
        if access is None or each.hidden or (each.deprecated and not include_deprecated):
            continue
        item = paths.setdefault(each.path, {})
        item[each.method.lower()] = described = _described(each, access, schemas, examples=what.examples)
        if each.previews:
            described["x-preview"] = schemas.response(what.preview)
            described["description"] += _HAS_PREVIEW
    tags = sorted({tag for item in paths.values() for each in item.values() for tag in each["tags"]})
    schemas.close_requests()
    components = {**what.components, "schemas": dict(sorted((schemas.components | what.components["schemas"]).items()))}
    document: Document = {
        "openapi": "3.1.0",
        "info": {"title": what.title, "version": what.version, "description": what.description},
        "servers": [dict(server) for server in what.servers],
        "tags": [{"name": tag, "description": ""} for tag in tags],
        "paths": dict(sorted(paths.items())),
        "components": components,
    }
    if what.webhooks:
        document["webhooks"] = what.webhooks
        document["tags"].append(_WEBHOOKS)
    return document


def _described(operation: Operation, access: Access, schemas: Schemas, examples: Examples) -> Document:
    text = inspect.getdoc(operation.handler) or ""
    summary, _, rest = text.partition("\n\n")
    summary = " ".join(summary.split())
    found: Document = {
        "tags": [operation.tag],
        "summary": summary.rstrip("."),
        "description": rest or summary,
        "operationId": operation.name,
        "security": _security(access),
        "deprecated": operation.deprecated is not None,
        "responses": _responses(operation, access, schemas),
    }
    if parameters := [*_parameters(operation), *_header_parameters(operation, access)]:
        found["parameters"] = parameters
    if operation.takes_file:
        found["requestBody"] = _FILE
    if operation.body is not None:
        schema = schemas.request(operation.body)
        required = not operation.is_body_optional
        found["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    if operation.moves_money:
        found["x-moves-money"] = True
    if operation.deprecated is not None:
        found["x-sunset"] = operation.deprecated.sunset.isoformat()
    for part, more in deepcopy(dict(operation.documented)).items():
        known = found.get(part)
        if isinstance(known, dict):
            found[part] = known | more
        else:
            found[part] = [*more, *(known or ())] if isinstance(more, list) else more
    found["responses"] = dict(sorted(found["responses"].items()))
    _add_examples(found, examples.get(operation.name, {}), status=str(operation.status))
    return found


def _security(access: Access) -> list[Document]:
    if access.proof is Proof.NONE:
        return []
    if access.proof is Proof.OAUTH:
        return [{"CodeBearer": [scope]} for scope in (access.scope, access.also) if scope]
    return [{"bearer": []}]


def _parameters(operation: Operation) -> Iterator[Document]:
    for name in operation.path_names:
        yield {
            "name": name,
            "in": "path",
            "schema": path_schema(operation.hints[name]),
            "required": True,
            "deprecated": False,
        }
    for each in operation.query:
        yield _query_parameter(each)


def _query_parameter(parameter: Parameter) -> Document:
    described: Document = {} if parameter.description is None else {"description": parameter.description}
    if parameter.schema.get("type") == "object":
        described |= {"style": "deepObject", "explode": True}
    return {
        "name": parameter.name,
        "in": "query",
        "schema": parameter.schema,
        **described,
        "required": False,
        "deprecated": False,
        "allowEmptyValue": False,
        "allowReserved": False,
    }


def _header_parameters(operation: Operation, access: Access) -> list[Document]:
    """Return the headers that a request may or must carry besides its token."""
    if access.proof is Proof.SIGNATURE:
        return [*_REFS.values()]
    keyed = access.proof is Proof.OAUTH and operation.changes
    return [_REFS["key"]] if keyed or access.proof is Proof.TOKEN_AND_KEY else []


def _responses(operation: Operation, access: Access, schemas: Schemas) -> Document:
    answer: Document = {"description": HTTPStatus(operation.status).description, "headers": {}}
    if operation.returns is not None:
        schema = schemas.response(operation.returns)
        answer["content"] = {"application/json": {"schema": schema}}
    return {str(operation.status): answer, **_refusals(operation, access)}


def _refusals(operation: Operation, access: Access) -> Document:
    """Return the error responses of an operation, by status, each naming its codes."""
    codes = {*_ALWAYS, *operation.refuses, *_PROOF_FAILS[access.proof]}
    if access.proof not in {Proof.NONE, Proof.OAUTH} or (access.proof is Proof.OAUTH and operation.changes):
        codes |= {*_KEYED}
    if operation.body is not None:
        codes |= {*_WITH_BODY}
    if operation.takes_file:
        codes |= {*_WITH_FILE}
    if operation.path_names:
        codes.add("not-found")
    if operation.previews:
        codes |= {"preview-outdated", "preview-used"}
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    answers = {str(status): _refused(status, named) for status, named in sorted(by_status.items())}
    shaped = answers.setdefault("422", {"description": "", "content": {}, "x-problems": []})
    shaped["description"] = ", ".join(["the request has the wrong shape", *shaped["x-problems"]])
    shaped["content"]["application/json"] = {"schema": {"$ref": "#/components/schemas/InvalidRequest"}}
    return answers


def _refused(status: int, codes: list[str]) -> Document:
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {"application/problem+json": {"schema": _PROBLEM_REF}},
        "x-problems": codes,
    }


def _add_examples(operation: Document, examples: Mapping[str, Any], *, status: str) -> None:
    """Insert the examples of a request and of its response of this status."""
    if "request" in examples and "requestBody" in operation:
        for content in operation["requestBody"]["content"].values():
            content["example"] = examples["request"]
    if "response" in examples:
        content = operation["responses"][status].setdefault("content", {}).setdefault("application/json", {})
        content["example"] = examples["response"]
